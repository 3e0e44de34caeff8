"""Downloads of bundles."""
