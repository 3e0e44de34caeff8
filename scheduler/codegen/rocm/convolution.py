"""The convolution template: an implicit matrix product over the windows of the input.

Rows are output pixels, columns output channels, k the window's (channel, y, x); groups are the
batch axis. The input is read where it lies: which pixel a row is gets worked out once a block,
which place in the window a column of k is once a step, and a mask stands in for the padding.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.axes import (
    columns_contiguous,
    window_as_in_memory,
    with_split_axes,
)
from scheduler.codegen.rocm.gemm import GemmTemplate
from scheduler.ir.operations import Contraction


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the building blocks are the GEMM's."""

    name: ClassVar[str] = "convolution"

    def prepare(self, members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
        hints = {name: info.hint for name, info in self.lowered.graph.symbols.items()}
        buffers = self.lowered.buffers
        ordered = tuple(
            window_as_in_memory(member, buffers, hints) for member in with_split_axes(members)
        )
        return (columns_contiguous(ordered[0], buffers),) if len(ordered) == 1 else ordered
