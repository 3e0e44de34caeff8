"""Loop nests over buffers: their accesses, axis merging, and vectorization."""

from scheduler.codegen.loops.nest import Access, LoopNest
from scheduler.codegen.loops.statements import Statement

__all__ = ["Access", "LoopNest", "Statement"]
