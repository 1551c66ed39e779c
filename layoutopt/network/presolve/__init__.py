"""Exact reductions of labelling problems, each with its inverse."""
