"""Errors, numbers, limits, files and results, without knowledge of the field."""
