"""The loop templates of HIP C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias, TypeVar

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.loops import template
from scheduler.codegen.loops.alignment import VECTORS, Pack, Packs
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.precision import precision_roots
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.launch import LaunchTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.functions import FloorDiv, as_expr, symbol
from scheduler.ir.operations import Axis, Lowered
from scheduler.targets import Target

EXTENT = "extent"
_MULTIPLIER_SCALE = 1 << 62  # of kiln/divide.h

T = TypeVar("T")

Guarded: TypeAlias = tuple[Sequence[str], T]
"""A version of a loop with the conditions under which it runs, unless an earlier one does."""


def print_versions(choices: Sequence[Guarded[T]], body: Callable[[T, int], str]) -> str:
    """Return the statements of the first version whose conditions hold; the last one has none.
    ``body`` gives a version's statements at an indentation."""
    _, version = choices[-1]
    text = body(version, 1 if len(choices) == 1 else 2)
    for conditions, version in reversed(choices[:-1]):
        condition, then = " && ".join(conditions), body(version, 2)
        text = f"  if ({condition}) {{\n{then}\n  }} else {{\n{text}\n  }}"
    return text


@dataclass(frozen=True)
class RowProblem:
    """A nest with inner axes; ``rows`` and the ``steps`` of each are those of the example that the
    model was exported with."""

    nest: LoopNest
    targets: tuple[Target, ...]
    rows: int
    steps: int

    @property
    def row_axis(self) -> Axis | None:
        """Return the axis along which a row's steps are neighbours."""
        return self.nest.inner[-1] if self.nest.inner else None

    @cached_property
    def row_packs(self) -> Mapping[int, Packs]:
        """Return the packs along a row, by width."""
        accesses = self.nest.accesses
        return {width: Packs(self.nest, self.row_axis, width, accesses) for width in VECTORS}


class LoopTemplate(template.LoopTemplate[ROCmTemplateKernel], LaunchTemplate):
    """A template over a loop nest; subclasses define how the nest is spread over threads.

    32-bit indices are divided by symbolic sizes with numbers that the caller computes once (a
    division takes a GPU twenty or more instructions).
    """

    chooses_width: ClassVar[bool] = False
    """Whether a kernel also has its statements for 32-bit indices if 64 bits may be needed."""

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        if self.chooses_width or not self.nest.needs_64_bits():
            divisors = self.nest.divisors()
            self.nest.multipliers = {size: f"by{i}" for i, size in enumerate(divisors)}

    @property
    def derived_scalars(self) -> tuple[tuple[str, Expr], ...]:
        numbers: list[tuple[str, Expr]] = []
        for size, name in self.nest.multipliers.items():
            positive = size if bounds(size, self.ranges)[0] > 0 else sympy.Max(size, 1)
            numbers.append((name, FloorDiv(as_expr(_MULTIPLIER_SCALE), positive) + 1))
        if self.both_widths:
            sizes = map(symbol, self.nest.symbols())
            numbers.append((EXTENT, sympy.Max(*self.nest.extents(), *sizes)))
        return tuple(numbers)

    @cached_property
    def both_widths(self) -> bool:
        """Whether the kernel has both index widths: if it divides by sizes. The number ``EXTENT``
        selects one."""
        return bool(self.nest.multipliers) and self.nest.needs_64_bits()

    def printer(self, pack: Pack | None, indent: int = 1, *, fast: bool = True) -> NestPrinter:
        """Return a printer into empty lines; ``fast``: of fast calls, where values permit them."""
        printer = self.nest_printer(self.nest, pack, indent)
        if fast:
            printer.values.allow_fast(precision_roots(self.nest))
        return printer

    @cached_property
    def index(self) -> IndexPrinter:
        """Return a printer of sizes in the device functions."""
        return self.printer(None, fast=False).index

    def header(self) -> str:
        divide_header = "#include <kiln/divide.h>\n" if self.nest.multipliers else ""
        return super().header() + divide_header
