"""Why pairs lose and sinks lie where they do, and what would have to change."""
