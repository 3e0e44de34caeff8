"""Changes of kernels and builds, each in one transaction."""
