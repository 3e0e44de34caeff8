"""Pages about series and alerts."""
