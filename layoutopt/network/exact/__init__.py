"""Choice of exact methods: reductions first, then bounds, then search."""
