"""The convolution template: an implicit matrix product over the windows of the input.

Rows are output pixels, columns output channels, k the window's (channel, y, x); groups are the
batch axis. The input is read where it lies: which pixel a row is gets worked out once a block,
which place in the window a column of k is once a step, and a mask stands in for the padding.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.prepare import convolution_contractions
from scheduler.codegen.rocm.gemm import GemmTemplate


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the building blocks are the GEMM's."""

    name: ClassVar[str] = "convolution"
    contractions = staticmethod(convolution_contractions)
