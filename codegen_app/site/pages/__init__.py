"""Pages about all subjects."""
