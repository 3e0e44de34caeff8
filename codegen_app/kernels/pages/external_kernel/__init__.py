"""The page of a kernel from elsewhere."""
