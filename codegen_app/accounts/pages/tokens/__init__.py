"""The page of API tokens."""
