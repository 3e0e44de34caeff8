"""The page of a bundle that is being packed."""
