"""Modelled times of kernels: requested, computed by a worker, stored."""
