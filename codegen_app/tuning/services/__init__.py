"""Changes of runs, each in one transaction."""
