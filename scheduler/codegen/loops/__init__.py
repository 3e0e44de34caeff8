"""Loop nests over buffers: which accesses there are, which axes merge, what is a vector."""

from scheduler.codegen.loops.nest import Access, LoopNest
from scheduler.codegen.loops.statements import Statement

__all__ = ["Access", "LoopNest", "Statement"]
