"""The convolution for sm_90a in CuteDSL: windows of the input as rows of the GEMM's first operand.

If a descriptor can describe the windows, TMA loads them in place (``im2col.py``); otherwise a
preceding kernel writes them as a matrix into the workspace. A one-pixel window over an input stored
as rows of channels is already a matrix.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.contraction.prepare import convolution_contractions
from scheduler.codegen.cutedsl.gemm.template import GemmTemplate


class ConvolutionTemplate(GemmTemplate):
    """A contraction whose ``a`` is a masked window; the kernels are the GEMM's."""

    name: ClassVar[str] = "cutedsl_convolution"
    contractions = staticmethod(convolution_contractions)
