"""Sums of costs of labels and of pairs of labels, minimised exactly (PBQP)."""
