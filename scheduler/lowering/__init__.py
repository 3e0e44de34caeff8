"""From a graph to operations over buffers."""

from scheduler.lowering.lower import lower

__all__ = ["lower"]
