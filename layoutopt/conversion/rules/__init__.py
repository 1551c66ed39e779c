"""Semantics of ops: the meaning of their axes, and each op under another order of axes."""
