"""Graphs on tile memories: capacity carried out, hooks obeyed, layouts simulated, what-ifs."""
