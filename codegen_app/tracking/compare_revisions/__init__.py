"""Compare two revisions, branches or runs over all their series."""
