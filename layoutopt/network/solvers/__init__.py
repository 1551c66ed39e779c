"""Exact methods for labelling problems."""
