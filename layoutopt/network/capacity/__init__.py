"""Labelling problems whose labels are tiles that hold so many bytes."""
