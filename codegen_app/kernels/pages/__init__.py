"""Pages about kernels."""
