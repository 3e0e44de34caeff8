"""The list of tuning runs."""
