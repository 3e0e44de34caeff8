"""The page of a kernel."""
