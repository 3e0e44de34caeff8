"""Pages about graphs."""
