"""The page of a header that a kernel includes."""
