"""The convolution of sm_90a in CuteDSL: windows of the input as rows of the GEMM's first operand.

Where a descriptor can say which they are, TMA loads them from where they lie (``im2col.py``), else
a kernel before writes them as a matrix into the workspace. A window of one pixel that lies as rows
of channels is a matrix already.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.prepare import convolution_contractions
from scheduler.codegen.cutedsl.gemm import GemmTemplate


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the kernels are the GEMM's."""

    name: ClassVar[str] = "cutedsl_convolution"
    contractions = staticmethod(convolution_contractions)
