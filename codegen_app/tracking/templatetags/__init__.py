"""Template tags for series and alerts."""
