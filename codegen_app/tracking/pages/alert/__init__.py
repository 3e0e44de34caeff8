"""The page of an alert."""
