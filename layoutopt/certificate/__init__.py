"""Certificate checker, independent of solvers and of the code that writes certificates."""
