"""From an answer to a program: in which steps a framework gives tensors their layouts."""
