"""Graphs of ops that run in layouts."""
