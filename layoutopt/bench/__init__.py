"""Batch runs: suites of instances, a store of their results, and what changed between two."""
