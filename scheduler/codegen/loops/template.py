"""The common part of templates over a loop nest (pointwise, reduction, scan), in any language."""

from __future__ import annotations

from functools import cached_property

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.single_launch import InterfaceSpec, Kernel, SingleLaunchTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Lowered, Pointwise, Reduction, Scan
from scheduler.targets import Target


class LoopTemplate(SingleLaunchTemplate[Kernel]):
    """A template over a loop nest; subclasses define how the nest is spread over threads."""

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        members = [m for m in node.members if isinstance(m, Pointwise | Reduction | Scan)]
        if len(members) != len(node.members):
            raise ValueError(f"{node.name} has members that are not loops")
        # A store that the node does not write out is read by later members only: it stays in
        # registers.
        self.nest = LoopNest(members, lowered.buffers, self.ranges, visible=node.writes)

    @cached_property
    def interface(self) -> InterfaceSpec:
        nest = self.nest
        return InterfaceSpec(
            *(nest.inputs, nest.outputs, nest.symbols(), nest.outer_numel, nest.needs_64_bits()),
            self.derived_scalars,
        )

    @property
    def derived_scalars(self) -> tuple[tuple[str, Expr], ...]:
        """Return the kernel's numbers that are computed from sizes."""
        return ()
