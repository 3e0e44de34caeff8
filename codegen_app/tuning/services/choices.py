"""A graph's code with the selected kernels of its nodes: for bundles and wrappers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db.models import Q

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import KernelUse
from codegen_app.kernels.services import engine
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.serving import Bucket, NodeBuckets
from scheduler import pipeline
from scheduler.agent.version import generator_digest
from scheduler.bundle.manifest import ChosenBy
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import UserError
from scheduler.fusion.nodes import SchedulerNode


@dataclass(frozen=True)
class NotGeneratedRow:
    """A kernel selected for a scheduled node, at all sizes or while ``sizes`` holds, that this
    version of the generator does not generate: bundles contain ``instead``, the default."""

    node: str
    selected: str
    instead: str
    sizes: str


@dataclass(frozen=True)
class SmallerSizes:
    """The selected kernels by scheduled node while the size ``symbol`` is at most ``at_most``."""

    symbol: str
    at_most: int
    selected: Mapping[str, str]


@dataclass(frozen=True)
class Choices:
    """The selected kernels of a graph by scheduled node, all by name, in one bucket.

    Where a symbolic size was measured at smaller values too, these sizes use the kernels selected
    there. Without a bucket nothing is selected: every node uses its default.
    """

    graph_name: str
    file_digest: str
    bucket: Bucket | None
    selected: Mapping[str, str]
    smaller: tuple[SmallerSizes, ...]

    @property
    def _target(self) -> str:
        """The target that the kernels were measured on."""
        return self.bucket.target if self.bucket else ""

    def generated(self) -> pipeline.GeneratedCode:
        """Return the code, each node with its selected kernel, else the default. Raises
        ``UserError``."""
        scheduled = engine.scheduled(self.file_digest)
        plan = scheduled.with_name(self.graph_name)
        if self.bucket is None:
            return pipeline.generate(plan, scheduled.backend.targets)
        return pipeline.generate(
            plan,
            scheduled.backend.targets,
            self._chooser(self.selected),
            [
                (sizes.symbol, sizes.at_most, self._chooser(sizes.selected))
                for sizes in self.smaller
            ],
            ChosenBy(
                self.bucket.device_name,
                self.bucket.target,
                self.bucket.toolchain,
                self.bucket.bindings,
            ),
        )

    def not_made(self) -> tuple[NotGeneratedRow, ...]:
        """Return the selected kernels that this version of the generator does not make, and what
        the code uses instead. Raises ``UserError`` if the graph's file can no longer be scheduled.
        """
        rows = [*self._not_made("", self.selected)]
        for sizes in self.smaller:
            rows += self._not_made(f"{sizes.symbol} <= {sizes.at_most}", sizes.selected)
        return tuple(dict.fromkeys(rows))

    def _not_made(self, sizes: str, selected: Mapping[str, str]) -> Iterator[NotGeneratedRow]:
        defaults, known = _generated_kernels(self.file_digest, selected)
        unknown = {node: name for node, name in selected.items() if (node, name) not in known}
        recorded = engine.kernel_records(unknown.values()) if unknown else {}
        for node, name in unknown.items():
            row = recorded.get(name)
            if row and engine.find_candidate(self.file_digest, node, row, self._target):
                continue
            default = defaults.get(node) or engine.default_kernel(self.file_digest, node)
            if row is None or name != default:
                yield NotGeneratedRow(node, name, default, sizes)

    def _chooser(self, selected: Mapping[str, str]) -> pipeline.Chooser:
        recorded = engine.kernel_records(selected.values())

        def choose(node: SchedulerNode) -> TemplateCaller | pipeline.NotGenerated | None:
            name = selected.get(node.name)
            if name is None:
                return None
            row = recorded.get(name)
            caller = row and engine.find_caller(self.file_digest, node.name, row, self._target)
            return caller or pipeline.NotGenerated(name)

        return choose


def _generated_kernels(
    file_digest: str, selected: Mapping[str, str]
) -> tuple[Mapping[str, str], set[tuple[str, str]]]:
    """Return the recorded defaults of nodes, and the selected kernels of nodes that this generator
    is known to make (one query).

    Generating them again takes seconds for a large model. A kernel is recorded with one of its
    nodes; it also fits other nodes of the same problem with the same default.
    """
    uses = KernelUse.objects.filter(
        Q(is_default=True) | Q(kernel__name__in=set(selected.values())),
        generator=generator_digest(),
        template_node__graph__file__digest=file_digest,
    ).values_list("template_node__problem", "template_node__name", "kernel__name", "is_default")
    default = {node: (problem, kernel) for problem, node, kernel, is_default in uses if is_default}
    generated = {(default.get(node), kernel) for _, node, kernel, _ in uses}
    pairs = {
        (node, kernel)
        for node, kernel in selected.items()
        if node in default and (default[node], kernel) in generated
    }
    return {node: kernel for node, (_, kernel) in default.items()}, pairs


def graph_choices(graph: Graph, times: str = "") -> Choices:
    """Return what is selected in the bucket ``times``; by default, in a GPU's latest bucket.

    Times of the emulation select nothing: they say nothing about a GPU. Raises ``UserError`` for an
    unknown bucket.
    """
    nodes = TemplateNode.objects.filter(graph=graph).select_related("problem")
    known = serving.node_buckets(nodes.defer("rejected"))  # hundreds of lines per node
    bucket = known.find(times)
    if times and (bucket is None or bucket.name != times):
        raise UserError(f"{graph.name}: no measurements on {times!r}")
    if times and bucket is not None and bucket.emulated:
        raise UserError(f"{graph.name}: CPU emulation times cannot select kernels for a GPU")
    if bucket is None or bucket.emulated:
        return Choices(graph.name, graph.file.digest, None, {}, ())
    usual = _selected_kernels(known, bucket)
    smaller = tuple(
        SmallerSizes(symbol, at_most, {**usual, **_selected_kernels(known, other)})
        for symbol, at_most, other in serving.smaller_buckets(known.buckets, bucket)
    )
    return Choices(graph.name, graph.file.digest, bucket, usual, smaller)


def _selected_kernels(known: NodeBuckets, bucket: Bucket) -> Mapping[str, str]:
    selections = known.selections(bucket)
    return {
        node.name: selections[node.problem_id].kernel.name
        for node in known.nodes
        if node.problem_id in selections
    }
