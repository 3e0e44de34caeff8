"""Scheduler nodes: the groups of operations that become one kernel each, and the decisions.

A group's ``main`` operation decides its template; what was fused into it is already inside its
trees (prologues) and stores (epilogues), or stands beside it (``members``) where several
operations share one loop nest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.ir.graph import Expr
from scheduler.ir.operations import Contraction, Extern, GroupKind, Lowered, Operation


@dataclass(frozen=True)
class FusionDecision:
    """Whether ``consumer`` was joined to ``producer``, and the reason, either way."""

    producer: str
    consumer: str
    fused: bool
    reason: str


@dataclass(frozen=True)
class SchedulerNode:
    """One kernel to be.

    ``members`` are the operations in order, all over the same loop variables. A template group
    has one (its epilogues are its stores), or several contractions that share ``a``, their batch,
    m and k axes. In a reduction group the axes of a pointwise member are those of the reductions
    (computed once a row), or these followed by the reduction axes.

    What a member computes once a row, later members read with a ``Load`` at the very index of its
    store: kernels take it from a register. It goes to memory only where it is one of ``writes``:
    the results that another kernel or the user reads.

    ``group`` is Inductor's group_fn: the simplified product of the iteration sizes and of the
    reduction sizes. ``nodes`` are the graph nodes computed here. ``frees`` are the buffers whose
    last reader this is.
    """

    name: str
    kind: GroupKind
    members: tuple[Operation, ...]
    group: tuple[Expr, Expr]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    nodes: tuple[str, ...]
    frees: tuple[str, ...] = ()

    @property
    def contractions(self) -> tuple[Contraction, ...]:
        """Its members that are multiplications: all of them in a template group of that kind."""
        return tuple(member for member in self.members if isinstance(member, Contraction))

    @property
    def externs(self) -> tuple[Extern, ...]:
        """Its members that have no kernel: all of them in an extern group."""
        return tuple(member for member in self.members if isinstance(member, Extern))


@dataclass(frozen=True)
class Schedule:
    """The whole graph in execution order.

    ``storage`` maps an intermediate buffer to the allocation that it lives in (reuse of memory
    whose last reader is done): names of allocations with their size in bytes are ``pools``.
    """

    lowered: Lowered
    nodes: tuple[SchedulerNode, ...]
    decisions: tuple[FusionDecision, ...]
    storage: Mapping[str, str]
    pools: Mapping[str, Expr]
    fused: bool = True  # False: every operation is a group of its own
    split: tuple[str, ...] = ()  # fused nodes that were split again (fusion/split.py)
