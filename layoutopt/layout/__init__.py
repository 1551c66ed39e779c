"""Layouts of tensors: how they are written, what they mean, and who needs which."""
