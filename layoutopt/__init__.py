"""Provably optimal memory layouts for neural-network graphs."""

__version__ = "0.1.0"
