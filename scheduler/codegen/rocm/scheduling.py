"""ROCm C++ scheduling: nodes become candidates, the chosen ones become kernels and calls."""

from __future__ import annotations

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.codegen.rocm.attention import AttentionTemplate
from scheduler.codegen.rocm.caller import ROCmTemplateCaller
from scheduler.codegen.rocm.convolution import ConvolutionTemplate
from scheduler.codegen.rocm.gemm import GemmTemplate
from scheduler.codegen.rocm.pointwise import PointwiseTemplate
from scheduler.codegen.rocm.reduction import ReductionTemplate
from scheduler.codegen.rocm.scan import ScanTemplate
from scheduler.codegen.rocm.source import SOURCE_FILE
from scheduler.codegen.scheduling import BaseScheduling, TemplateTable
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import GroupKind


class ROCmCPPScheduling(BaseScheduling):
    """HIP C++ from templates, for AMD's GPUs and their emulation."""

    source_file = SOURCE_FILE

    def templates(self) -> TemplateTable:
        return {
            GroupKind.GEMM: GemmTemplate,
            GroupKind.CONVOLUTION: ConvolutionTemplate,
            GroupKind.POINTWISE: PointwiseTemplate,
            GroupKind.REDUCTION: ReductionTemplate,
            GroupKind.SCAN: ScanTemplate,
            GroupKind.ATTENTION: AttentionTemplate,
        }

    def codegen(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        if isinstance(caller, ROCmTemplateCaller) and caller.node == node.name:
            _check_outputs(node, caller)
        if node.kind in (GroupKind.GEMM, GroupKind.CONVOLUTION, GroupKind.ATTENTION):
            return self.codegen_template(node, caller)
        return super().codegen(node, caller)

    def codegen_template(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        """Define and call a template node's kernel. The template's own contraction is no
        reduction of the loop nest: a template node with a reduction extent is a bug."""
        if node.group[1] != 1:
            raise ValueError(f"template node {node.name} has a reduction extent {node.group[1]}")
        return super().codegen(node, caller)


def _check_outputs(node: SchedulerNode, caller: ROCmTemplateCaller) -> None:
    """What a template leaves must be what the node is there for."""
    left = caller.output()
    written = {buffer.name for buffer in left.outputs}
    if written != set(node.writes) or not set(left.inputs) <= set(node.reads):
        raise ValueError(
            f"{left.template} leaves {sorted(written)} of {sorted(left.inputs)}, but {node.name}"
            f" makes {sorted(node.writes)} of {sorted(node.reads)}"
        )
