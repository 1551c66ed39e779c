"""Certificates, written: evidence that :mod:`layoutopt.certificate` accepts."""
