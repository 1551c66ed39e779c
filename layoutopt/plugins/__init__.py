"""Solvers by name: those of this package, and those of users."""
