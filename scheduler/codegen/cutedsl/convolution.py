"""The convolution of sm_90a in CuteDSL: the windows of the input as a matrix in the workspace
(im2col), whose product with the weights is the GEMM's.

A window of one pixel that lies as rows of channels is loaded from where it is.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.axes import (
    columns_contiguous,
    window_as_in_memory,
    with_split_axes,
)
from scheduler.codegen.cutedsl.gemm import GemmTemplate
from scheduler.ir.bindings import hints
from scheduler.ir.operations import Contraction


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the kernels are the GEMM's."""

    name: ClassVar[str] = "cutedsl_convolution"

    def prepare(self, members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
        sizes, buffers = hints(self.lowered.graph.symbols), self.lowered.buffers
        ordered = tuple(
            window_as_in_memory(member, buffers, sizes) for member in with_split_axes(members)
        )
        return (columns_contiguous(ordered[0], buffers),) if len(ordered) == 1 else ordered
