"""The pages, one file per page."""
