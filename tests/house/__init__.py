"""What the size of the package is held to."""
