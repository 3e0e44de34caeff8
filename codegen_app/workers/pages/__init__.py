"""Pages about workers."""
