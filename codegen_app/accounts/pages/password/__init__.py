"""The page that changes a password."""
