"""The specification: score and rules of layouts, independent of solvers and lowering."""
