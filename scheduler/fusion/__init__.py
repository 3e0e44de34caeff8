"""Fusion of operations into kernels, execution order, and memory planning."""

from scheduler.fusion.schedule import schedule
from scheduler.fusion.verifier import verify

__all__ = ["schedule", "verify"]
