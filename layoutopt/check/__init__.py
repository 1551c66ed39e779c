"""The specification: score and rules of layouts, without any solver and without the lowering."""
