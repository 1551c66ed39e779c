"""Instances of named families, seeded."""
