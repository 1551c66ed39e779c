"""From a graph to labelling problems, by elements or by classes, and back to layouts."""
