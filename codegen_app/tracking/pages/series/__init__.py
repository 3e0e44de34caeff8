"""The list of series."""
