"""Changes of graphs, each in one transaction."""
