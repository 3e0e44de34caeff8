"""The page of a template node."""
