"""Labels on nodes, with costs of labels and of pairs of labels: solved with proof."""
