"""Which exact method to use when: reductions first, then bounds, then search."""
