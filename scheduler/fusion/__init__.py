"""Which operations share a kernel, in which order kernels run, and where buffers live."""

from scheduler.fusion.schedule import schedule
from scheduler.fusion.verifier import verify

__all__ = ["schedule", "verify"]
