"""Programs from answers: the steps in which a framework gives tensors their layouts."""
