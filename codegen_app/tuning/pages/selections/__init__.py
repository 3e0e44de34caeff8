"""The page of selected kernels."""
