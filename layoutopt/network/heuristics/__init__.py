"""Heuristics on labelling problems: good answers soon, and no proof."""
