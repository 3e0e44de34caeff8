"""Changes of series, each in one transaction."""
