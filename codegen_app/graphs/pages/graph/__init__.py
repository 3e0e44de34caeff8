"""The page of a graph."""
