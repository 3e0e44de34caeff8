"""The convolution template: an implicit matrix product over the windows of the input.

Rows are output pixels, columns output channels, k the window's (channel, y, x); groups are the
batch axis. The input is read in place: a row's pixel is computed once per block, the window
position of a k column once per step, and a mask replaces the padding.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.prepare import convolution_contractions
from scheduler.codegen.rocm.gemm.template import GemmTemplate


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; it uses the building blocks of the GEMM."""

    name: ClassVar[str] = "convolution"
    contractions = staticmethod(convolution_contractions)
