"""Scheduler nodes: groups of operations that become one kernel each, and fusion decisions.

A group's ``main`` operation determines its template. Fused operations are part of its trees
(prologues) and stores (epilogues), or further ``members`` if several operations share a loop nest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.ir.graph import Expr
from scheduler.ir.operations import Contraction, Extern, GroupKind, Lowered, Operation


@dataclass(frozen=True)
class FusionDecision:
    """Whether ``consumer`` was fused with ``producer``, and the reason in either case."""

    producer: str
    consumer: str
    fused: bool
    reason: str


@dataclass(frozen=True)
class SchedulerNode:
    """A group of operations that becomes one kernel.

    ``members`` are the operations in order, all over the same loop variables. A template group
    has one member (its epilogues are its stores), or several contractions that share ``a`` and
    the batch, m and k axes. In a reduction group the axes of a pointwise member are those of the
    reductions (computed once per row), or these followed by the reduction axes.

    Later members read a value that is computed once per row with a ``Load`` at the index of its
    store; kernels take it from a register. It is stored to memory only if it is in ``writes``: the
    results that another kernel or the user reads.

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
        """The members that are contractions: all members of a template group of that kind."""
        return tuple(member for member in self.members if isinstance(member, Contraction))

    @property
    def externs(self) -> tuple[Extern, ...]:
        """The members that have no kernel: all members of an extern group."""
        return tuple(member for member in self.members if isinstance(member, Extern))


@dataclass(frozen=True)
class Schedule:
    """The whole graph in execution order.

    ``storage`` maps an intermediate buffer to its allocation; an allocation is reused after its
    last reader. ``pools`` maps the name of an allocation to its size in bytes.
    """

    lowered: Lowered
    nodes: tuple[SchedulerNode, ...]
    decisions: tuple[FusionDecision, ...]
    storage: Mapping[str, str]
    pools: Mapping[str, Expr]
    fused: bool = True  # False: every operation is a group of its own
    split: tuple[str, ...] = ()  # fused nodes that were split again (fusion/split.py)
