"""Kernels: generating and building them, listings, modelled times, external kernels."""
