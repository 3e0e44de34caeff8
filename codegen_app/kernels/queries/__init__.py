"""Reads about kernels that several pages share."""
