"""The page that compares two kernels."""
