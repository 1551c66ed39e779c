"""Element arrays: every tensor element traced to its root, isomorphic components found."""
