"""Methods that choose layouts on the graph itself and prove nothing."""
