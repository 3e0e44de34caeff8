"""The convolution template: an implicit matrix product over the windows of the input.

Rows are output pixels, columns output channels, k the window's (channel, y, x); groups are the
batch axis. The input is read where it lies: which pixel a row is gets worked out once a block,
which place in the window a column of k is once a step, and a mask stands in for the padding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from scheduler.codegen.rocm.contraction import address, columns_contiguous
from scheduler.codegen.rocm.gemm import GemmTemplate
from scheduler.ir.graph import Expr
from scheduler.ir.indexing import evaluate
from scheduler.ir.operations import Axis, Buffer, Contraction
from scheduler.ir.values import loads


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the building blocks are the GEMM's."""

    name: ClassVar[str] = "convolution"

    def prepare(self, members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
        hints = {name: info.hint for name, info in self.lowered.graph.symbols.items()}
        buffers = self.lowered.buffers
        ordered = tuple(window_as_in_memory(member, buffers, hints) for member in members)
        return (columns_contiguous(ordered[0], buffers),) if len(ordered) == 1 else ordered


def window_as_in_memory(
    contraction: Contraction, buffers: Mapping[str, Buffer], hints: dict[str, int]
) -> Contraction:
    """The contraction with its k axes in the order in which the input's window lies in memory,
    so that neighbouring k are neighbours there (channels last: the channel runs fastest)."""
    load = next(loads(contraction.a), None)
    if load is None:
        return contraction
    loop = frozenset(
        axis.var for axes in (contraction.batch, contraction.m, contraction.k) for axis in axes
    )
    form = address(load, buffers[load.buffer], loop)
    if form is None:
        return contraction
    steps: dict[Expr, int] = {
        axis.var: abs(evaluate(form.at(axis.var), hints)) for axis in contraction.k
    }

    def step(axis: Axis) -> int:
        return steps[axis.var]

    return replace(contraction, k=tuple(sorted(contraction.k, key=step, reverse=True)))
