"""CuteDSL scheduling: nodes become candidates in Python that NVIDIA's compiler accepts."""

from __future__ import annotations

from scheduler.codegen.cutedsl.attention.template import AttentionTemplate
from scheduler.codegen.cutedsl.convolution import ConvolutionTemplate
from scheduler.codegen.cutedsl.gemm.template import GemmTemplate
from scheduler.codegen.cutedsl.pointwise import PointwiseTemplate
from scheduler.codegen.cutedsl.template import (
    ALTERNATIVE,
    CuteDSLTemplate,
    has_epilogue,
    has_prologue,
)
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.codegen.scheduling import TEMPLATE_KINDS, TemplateScheduling, TemplateTable
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import GroupKind
from scheduler.targets import Target

_BACKEND = "cuda"  # the backend whose targets are NVIDIA's


class CuteDSLScheduling(TemplateScheduling):
    """CuteDSL from templates, for NVIDIA's GPUs. Its kernels compete with those of HIP C++; nodes
    without a CuteDSL template are left to HIP C++."""

    source_file = CUTEDSL_SOURCE
    comment_mark = "#"
    alternative = ALTERNATIVE

    @classmethod
    def obstacle(cls, target: Target) -> str:
        return (
            ""
            if target.backend == _BACKEND
            else f"CuteDSL is supported only on NVIDIA GPUs, not on {target.name}"
        )

    def templates(self) -> TemplateTable:
        return {
            GroupKind.ATTENTION: AttentionTemplate,
            GroupKind.CONVOLUTION: ConvolutionTemplate,
            GroupKind.GEMM: GemmTemplate,
            GroupKind.POINTWISE: PointwiseTemplate,
        }

    def is_preferred(self, node: SchedulerNode) -> bool:
        template = self.template(node)
        return isinstance(template, CuteDSLTemplate) and template.is_preferred

    def is_cutedsl_template(self, node: SchedulerNode) -> bool:
        """Whether one template computes the node as a whole."""
        return node.kind in TEMPLATE_KINDS and node.kind in self.templates()

    def is_cutedsl_fused_template(self, node: SchedulerNode) -> bool:
        """Whether a template also computes operations that were fused before or after it."""
        fused = has_epilogue(node) or has_prologue(node)
        return self.is_cutedsl_template(node) and fused
