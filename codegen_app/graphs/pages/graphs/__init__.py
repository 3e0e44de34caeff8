"""The list of graphs."""
