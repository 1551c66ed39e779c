"""Measurements; each module is a script: ``python -m benchmarks.NAME``."""
