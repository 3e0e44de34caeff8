"""Two revisions, branches or runs over all their series."""
