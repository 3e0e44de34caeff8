"""What every backend's scheduling does: the interface between scheduled nodes and renderers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.outcome import Rejected


@dataclass(frozen=True)
class RejectedConfig:
    """A configuration that cannot serve a node, and why (``rejected.stage`` says where)."""

    template: str
    config: tuple[tuple[str, int | str | bool], ...]
    rejected: Rejected


@dataclass(frozen=True)
class Candidates:
    """All that can serve a node, and all that was turned down: nothing is dropped silently."""

    callers: tuple[TemplateCaller, ...]
    rejected: tuple[RejectedConfig, ...]


class BaseScheduling(ABC):
    """A backend: groups nodes, makes candidates, and renders the chosen one."""

    @staticmethod
    def group_fn(sizes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
        """The simplified product of each size tuple, as Inductor groups iteration spaces."""
        return tuple(
            sympy.simplify(sympy.Mul(*size)) if size else sympy.Integer(1) for size in sizes
        )

    @abstractmethod
    def candidates(self, node: SchedulerNode) -> Candidates:
        """Every configuration for the node, rendered, and the ones turned down."""

    @abstractmethod
    def default(self, node: SchedulerNode) -> TemplateCaller:
        """The configuration that the problem's size speaks for, without any measurement."""

    @abstractmethod
    def codegen(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        """The kernel (shared with every node of equal source) and this node's call of it."""
