"""ROCm C++ scheduling: nodes become candidates, the chosen ones become kernels and calls."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.codegen.rocm.attention import AttentionTemplate
from scheduler.codegen.rocm.convolution import ConvolutionTemplate
from scheduler.codegen.rocm.gemm import GemmTemplate
from scheduler.codegen.rocm.pointwise import PointwiseTemplate
from scheduler.codegen.rocm.reduction import ReductionTemplate
from scheduler.codegen.rocm.scan import ScanTemplate
from scheduler.codegen.scheduling import BaseScheduling, Candidates, RejectedConfig
from scheduler.codegen.template import KernelTemplate
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import GroupKind
from scheduler.targets import Target

TemplateTable = Mapping[GroupKind, type[KernelTemplate]]


class ROCmCPPScheduling(BaseScheduling):
    """The backend for one schedule and the targets that its kernels must serve."""

    def __init__(
        self,
        schedule: Schedule,
        targets: tuple[Target, ...],
        templates: TemplateTable | None = None,
    ) -> None:
        if not targets:
            raise ValueError("a schedule needs at least one target")
        self.schedule = schedule
        self.targets = targets
        self._templates = default_templates() if templates is None else templates
        self._comment = MetadataComment(schedule.lowered)
        self._problems: dict[str, KernelTemplate] = {}
        self._kernels: dict[str, RenderedKernel] = {}

    @property
    def kernels(self) -> tuple[RenderedKernel, ...]:
        """Every kernel defined so far, in order of first use."""
        return tuple(self._kernels.values())

    def template(self, node: SchedulerNode) -> KernelTemplate:
        """The template applied to the node; ``KeyError`` for kinds that no kernel is made for."""
        if node.name not in self._problems:
            template = self._templates[node.kind]
            self._problems[node.name] = template(
                node, self.schedule.lowered, self.targets, self._comment
            )
        return self._problems[node.name]

    def candidates(self, node: SchedulerNode) -> Candidates:
        template = self.template(node)
        callers: list[TemplateCaller] = []
        turned_down: list[RejectedConfig] = []
        for config in template.configs():
            rejected = template.reject(config)
            if rejected is None:
                callers.append(template.generate(config))
            else:
                items = tuple(config.items())
                turned_down.append(RejectedConfig(template.name, items, rejected))
        return Candidates(tuple(callers), tuple(turned_down))

    def default(self, node: SchedulerNode) -> TemplateCaller:
        template = self.template(node)
        return template.generate(template.default_config())

    def define_kernel(self, kernel: RenderedKernel) -> RenderedKernel:
        """The one kernel of that source: nodes that render the same text share it.

        The name is the source's digest, so that equal names are equal sources.
        """
        return self._kernels.setdefault(kernel.name, kernel)

    def codegen(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        if caller.node != node.name:
            raise ValueError(f"candidate of {caller.node} cannot serve {node.name}")
        if node.kind in (GroupKind.GEMM, GroupKind.CONVOLUTION, GroupKind.ATTENTION):
            return self.codegen_template(node, caller)
        return self.define_kernel(caller.kernel), caller.call

    def codegen_template(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        """Define and call a template node's kernel. The template's own contraction is no
        reduction of the loop nest: a template node with a reduction extent is a bug."""
        if node.group[1] != 1:
            raise ValueError(f"template node {node.name} has a reduction extent {node.group[1]}")
        return self.define_kernel(caller.kernel), caller.call


def default_templates() -> TemplateTable:
    """The template that serves each kind of group."""
    return {
        GroupKind.GEMM: GemmTemplate,
        GroupKind.CONVOLUTION: ConvolutionTemplate,
        GroupKind.POINTWISE: PointwiseTemplate,
        GroupKind.REDUCTION: ReductionTemplate,
        GroupKind.SCAN: ScanTemplate,
        GroupKind.ATTENTION: AttentionTemplate,
    }
