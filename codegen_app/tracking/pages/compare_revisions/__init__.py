"""The page that compares two revisions."""
