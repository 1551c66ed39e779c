"""What is known of ops: what the order of axes means to them, and what becomes of it."""
