"""Lowering of graphs to labelling problems, by elements or by classes, and back to layouts."""
