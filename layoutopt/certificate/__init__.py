"""Certificates, checked with no solver and with none of the code that made them."""
