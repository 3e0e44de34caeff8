"""Template tags for measured times."""
