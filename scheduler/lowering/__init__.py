"""Lower a graph to operations over buffers."""

from scheduler.lowering.lower import lower
from scheduler.lowering.verifier import verify

__all__ = ["lower", "verify"]
