"""The page of a tuning run."""
