"""Explanations of losses of pairs and locations of sinks, with alternatives."""
