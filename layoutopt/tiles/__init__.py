"""Tile memories, and mappings of tensors to tiles by rule."""
