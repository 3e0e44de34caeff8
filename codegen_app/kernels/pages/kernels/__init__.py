"""The list of kernels."""
