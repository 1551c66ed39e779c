"""Graphs of ops over tensors."""
