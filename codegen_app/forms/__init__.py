"""Forms: parameters of pages and of changes, one file per subject."""
