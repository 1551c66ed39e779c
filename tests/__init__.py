"""Tests; the folders mirror the package's rooms."""
