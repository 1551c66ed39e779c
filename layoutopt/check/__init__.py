"""What a correct answer is, stated without any solver and without the lowering."""
