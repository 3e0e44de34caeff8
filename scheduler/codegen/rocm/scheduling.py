"""ROCm C++ scheduling: nodes become candidates, the selected ones become kernels and calls."""

from __future__ import annotations

from scheduler.codegen.languages import HIP_SOURCE
from scheduler.codegen.rocm.attention.template import AttentionTemplate
from scheduler.codegen.rocm.convolution import ConvolutionTemplate
from scheduler.codegen.rocm.depthwise import DepthwiseTemplate
from scheduler.codegen.rocm.gemm.template import GemmTemplate
from scheduler.codegen.rocm.pointwise.template import PointwiseTemplate
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.codegen.rocm.scan.template import ScanTemplate
from scheduler.codegen.rocm.scatter import ScatterTemplate
from scheduler.codegen.rocm.sort import SortTemplate
from scheduler.codegen.scheduling import TemplateScheduling, TemplateTable
from scheduler.ir.operations import GroupKind


class ROCmCPPScheduling(TemplateScheduling):
    """HIP C++ from templates, for AMD's GPUs and their emulation."""

    source_file = HIP_SOURCE

    def templates(self) -> TemplateTable:
        return {
            GroupKind.GEMM: GemmTemplate,
            GroupKind.CONVOLUTION: ConvolutionTemplate,
            GroupKind.DEPTHWISE: DepthwiseTemplate,
            GroupKind.POINTWISE: PointwiseTemplate,
            GroupKind.REDUCTION: ReductionTemplate,
            GroupKind.SCAN: ScanTemplate,
            GroupKind.SCATTER: ScatterTemplate,
            GroupKind.SORT: SortTemplate,
            GroupKind.ATTENTION: AttentionTemplate,
        }
