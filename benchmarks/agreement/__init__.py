"""Everything that answers the same question, held against each other on random instances."""
