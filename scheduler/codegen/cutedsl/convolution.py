"""The convolution of sm_90a in CuteDSL: the windows of the input as a matrix in the workspace
(im2col), whose product with the weights is the GEMM's.

A window of one pixel that lies as rows of channels is loaded from where it is.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.prepare import windows
from scheduler.codegen.cutedsl.gemm import GemmTemplate


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the kernels are the GEMM's."""

    name: ClassVar[str] = "cutedsl_convolution"
    contractions = staticmethod(windows)
