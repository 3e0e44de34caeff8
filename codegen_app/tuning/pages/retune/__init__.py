"""The page that starts a tuning run."""
