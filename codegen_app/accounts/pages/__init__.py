"""Pages about one's account."""
