"""Batch runs: suites of instances, stores of results, and comparison of runs."""
