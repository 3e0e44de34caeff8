"""Pages about tuning."""
