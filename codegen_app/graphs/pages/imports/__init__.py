"""The page that imports a graph."""
