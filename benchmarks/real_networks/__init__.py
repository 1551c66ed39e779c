"""Networks of real exporters: their transposes, and what layoutopt and other optimisers leave."""
