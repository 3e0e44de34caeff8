"""The page of a graph: its scheduled nodes with the selected kernels, and the model's own nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Exists, Prefetch

from codegen_app.graphs.models import Graph, GraphNode, TemplateNode
from codegen_app.graphs.origins import common_module, lines_by_node, own_frame
from codegen_app.graphs.pages.graph.loops import find_loops, innermost_loop
from codegen_app.graphs.pages.graph.torch_comparison import TorchView, torch_view
from codegen_app.graphs.pages.graphs.query import TargetBuilds, builds_of_graphs
from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.coverage import Coverage
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.tuning.queries.measurements import measurement_fields
from codegen_app.tuning.queries.ranking import Call, KernelRanking, RankedKernel, rank_kernels
from codegen_app.tuning.services.choices import NotGeneratedRow
from codegen_app.web.row import build_row
from codegen_app.workers.models import OPEN_STATES, State, Worker
from scheduler.ir.operations.base import GroupKind

_RANGE_DASH = " \N{EN DASH} "
_SHOWN_CONSTANTS = 6  # constants among a model's outputs; the page's JSON has all


SHARE_STEPS = (0.01, 0.05, 0.1, 0.25)
"""Shares of a graph's time, 0 to 1, at which a node's colour changes."""


@dataclass(frozen=True)
class ServingKernel(MeasuredRow):
    """The kernel that serves a node: the selected one, or the generator's default.

    Its metrics are those in the page's bucket, empty until measured. ``instead`` names the kernel
    that bundles contain in its place if this version of the generator does not generate it.
    """

    kernel: str
    url: str
    selected: bool
    instead: str = ""


@dataclass(frozen=True)
class ScheduledRow:
    """One scheduled node. ``share`` is its part of the measured time of the graph, 0 to 1;
    ``least_ns`` the lower bound of its time by the roofline, ``roofline`` the ratio of this bound
    to the time, and ``bound`` what sets it; ``calls`` counts the nodes of the graph that its kernel
    serves, ``not_legal`` the configurations that a legality rule rejected for the page's target;
    ``loop`` is the innermost loop that runs it at each step; ``after`` are the ids of the nodes
    whose results it reads."""

    id: int
    url: str
    position: int
    name: str
    kind: str
    op: str
    problem: str
    graph_nodes: tuple[str, ...]
    module: str
    candidates: int
    not_legal: int
    serving: ServingKernel | None
    share: float | None
    least_ns: float | None
    roofline: float | None
    bound: str
    calls: int
    extern_reason: str
    loop: str = ""
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelLines:
    """Where a call is computed: the kernel that serves, and lines of its source (first, last)."""

    kernel: str
    url: str
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ViewNode:
    """One call of the model's graph, for the node graph. ``inputs`` name nodes; ``writes`` names
    the model's buffers and inputs that the call writes."""

    name: str
    op: str
    kind: str
    module: str
    source: str
    inputs: tuple[str, ...]
    scheduled: tuple[int, ...]
    computed: tuple[KernelLines, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class GraphPage:
    """One graph. Its times are those of one ``bucket``; ``buckets`` are all that can be shown.

    ``measured`` is the number of nodes in the sum of medians ``total_ns`` (one step per loop),
    ``ranking`` the kernels by their part of it, ``drivers`` the drivers of these measurements;
    ``target`` is the one whose rules rejected the illegal configurations. ``wrapper`` calls the
    generator's default of every node, unless it is that of the bucket's selections; ``code_error``
    is the reason why these cannot be generated. ``torch`` says whether torch itself agrees with the
    reference; None before the graph is prepared.
    """

    id: int
    url: str
    name: str
    digest: str
    producer: str
    state: str
    stage: str
    reason: str
    detail: str
    symbols: Mapping[str, Mapping[str, Any]]
    inputs: tuple[Mapping[str, Any], ...]
    outputs: tuple[str, ...]
    constant_outputs: tuple[Mapping[str, Any], ...]
    accounted: str
    decisions: tuple[Mapping[str, Any], ...]
    wrapper: str
    bucket: serving.Bucket | None
    buckets: tuple[serving.Bucket, ...]
    target: str
    measured: Coverage
    total_ns: float | None
    ranking: KernelRanking
    drivers: tuple[str, ...]
    scheduled: tuple[ScheduledRow, ...]
    nodes: tuple[ViewNode, ...]
    builds: tuple[TargetBuilds, ...] = ()
    not_made: tuple[NotGeneratedRow, ...] = ()
    code_error: str = ""
    torch: TorchView | None = None

    @property
    def is_open(self) -> bool:
        """Whether work on the graph is pending or running: the page then polls."""
        is_comparing = self.torch is not None and self.torch.is_open
        return self.state in OPEN_STATES or is_comparing or any(row.open for row in self.builds)

    @property
    def preparation(self) -> str:
        """The state of its kernels in a word or two."""
        words = {State.QUEUED: "queued for preparation", State.RUNNING: "being prepared"}
        return words.get(State(self.state)) or (
            "prepared" if self.state == State.DONE else f"not prepared: {self.state}"
        )

    @property
    def written(self) -> tuple[str, ...]:
        """The buffers and inputs that the model writes, by the model's names."""
        return tuple(
            tensor.get("source_name") or tensor["name"]
            for tensor in self.inputs
            if tensor.get("written")
        )

    @property
    def constants(self) -> str:
        """The constants among the outputs, as many as fit on a line: ``3 (output 1)``."""
        values = [(output["value"], output["place"]) for output in self.constant_outputs]
        shown = [
            # A float that JSON has no number for is stored as text.
            f"{value['float'] if isinstance(value, Mapping) else repr(value)} (output {place})"
            for value, place in values[:_SHOWN_CONSTANTS]
        ]
        more = len(self.constant_outputs) - len(shown)
        return ", ".join([*shown, f"{more} more"] if more else shown)

    @property
    def selected(self) -> int:
        """The number of scheduled nodes with a selected kernel."""
        return sum(1 for row in self.scheduled if row.serving and row.serving.selected)

    @property
    def not_made_count(self) -> int:
        """The number of serving kernels that bundles do not contain."""
        return sum(1 for row in self.scheduled if row.serving and row.serving.instead)

    @property
    def sum_title(self) -> str:
        """The title of the sum: all nodes that have a kernel, or how many of them."""
        what = "Sum of medians" + (" (one iteration per loop)" if self.has_loops else "")
        return what if self.measured.is_whole else f"{what}, {self.measured} nodes"

    @property
    def has_loops(self) -> bool:
        """Whether kernels run several times, depending on the data or on the number of slices."""
        return any(row.loop for row in self.scheduled)

    @property
    def share_steps(self) -> tuple[float, ...]:
        """The shares at which a node's colour changes."""
        return SHARE_STEPS

    @property
    def share_names(self) -> tuple[str, ...]:
        """The meaning of each colour of a share, from the lowest on."""
        names = [f"{100 * step:g}" for step in SHARE_STEPS]
        between = (f"{low}{_RANGE_DASH}{high} %" for low, high in pairwise(names))
        return (f"under {names[0]} %", *between, f"{names[-1]} % and more")

    @property
    def samples(self) -> str:
        """The number of samples of the medians: 20, or from the fewest to the most."""
        counts = {row.serving.n for row in self.scheduled if row.serving and row.serving.n}
        return (
            _RANGE_DASH.join(str(n) for n in sorted({min(counts), max(counts)})) if counts else ""
        )

    @property
    def without_kernel(self) -> str:
        """The nodes without a kernel by kind: ``2 extern``."""
        kinds = Counter(row.kind for row in self.scheduled if not GroupKind(row.kind).has_kernel)
        return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of nodes that occur, for the legend."""
        return tuple(sorted({row.kind for row in self.scheduled}))


def graph_page(pk: int, bucket_name: str = "") -> GraphPage:
    """Return a graph (14 queries). Raises ``Graph.DoesNotExist``. ``bucket_name`` selects whose
    times are shown; the first bucket if it is empty or unknown."""
    rows = Graph.objects.defer("tensors").select_related("torch_comparison")
    graph = rows.annotate(torch_here=Exists(Worker.alive_with_torch())).get(pk=pk)
    names = Prefetch("graph_nodes", GraphNode.objects.only("name", "module_path", "position"))
    node_buckets = serving.node_buckets(
        TemplateNode.objects.filter(graph=graph)
        .select_related("problem")
        .defer("problem__text")
        .prefetch_related(names)
        .order_by("position")
    )
    scheduled, bucket = node_buckets.nodes, node_buckets.find(bucket_name)
    loops, after = find_loops(scheduled), _dependencies(scheduled)
    served_kernels = serving.served_kernels(node_buckets, bucket)
    served = {
        node: ServingKernel(
            kernel=row.kernel.name,
            url=row.kernel.page_url(node=node, target=bucket.listing_target if bucket else ""),
            selected=row.selected,
            **measurement_fields(row.measured),
        )
        for node, row in served_kernels.items()
    }
    environments = [
        row.measured.result.environment for row in served_kernels.values() if row.measured
    ]
    target = serving.shown_target(serving.recorded_targets(scheduled), bucket)
    counts = dict(
        KernelUse.objects.filter(template_node__graph=graph)
        .order_by()
        .values_list("template_node")
        .annotate(Count("pk"))
    )
    ranking = rank_kernels(graph, node_buckets, bucket, served_kernels)
    ranked = {call.id: (row, call) for row in ranking.kernels for call in row.calls}
    computing_kernels = Counter(
        member.pk for node in scheduled for member in node.graph_nodes.all()
    )
    return build_row(
        GraphPage,
        graph,
        id=graph.pk,
        url=graph.get_absolute_url(),
        inputs=tuple(graph.inputs),
        outputs=tuple(output for output in graph.outputs if isinstance(output, str)),
        constant_outputs=tuple(output for output in graph.outputs if not isinstance(output, str)),
        decisions=tuple(graph.decisions),
        bucket=bucket,
        buckets=node_buckets.buckets,
        target=target,
        measured=ranking.measured,
        total_ns=ranking.total_ns,
        ranking=ranking,
        drivers=tuple(sorted({row.driver for row in environments if row.driver})),
        scheduled=tuple(
            _scheduled_row(
                node,
                served.get(node.pk),
                computing_kernels,
                *ranked.get(node.pk, (None, None)),
                candidates=counts.get(node.pk, 0),
                not_legal=len(node.rejected_for(target)),
                loop=loop.name if (loop := innermost_loop(loops, node.position)) else "",
                after=after[node.pk],
            )
            for node in scheduled
        ),
        builds=builds_of_graphs([graph.pk]).get(graph.pk, ()),
        nodes=_view_nodes(graph, scheduled, served),
        not_made=(),
        code_error="",
        torch=torch_view(graph, torch_here=graph.torch_here),
    )


def _scheduled_row(
    node: TemplateNode,
    serving: ServingKernel | None,
    computing_kernels: Mapping[int, int],
    kernel: RankedKernel | None,
    call: Call | None,
    **values: Any,
) -> ScheduledRow:
    members = sorted(node.graph_nodes.all(), key=lambda member: member.position)
    return build_row(
        ScheduledRow,
        node,
        id=node.pk,
        url=node.get_absolute_url(),
        problem=node.problem.summary if node.problem else "",
        graph_nodes=tuple(member.name for member in members),
        module=common_module(
            (member.module_path, computing_kernels[member.pk] > 1) for member in members
        ),
        serving=serving,
        share=call.share if call else None,
        least_ns=call.least_ns if call else None,
        roofline=call.roofline if call else None,
        bound=kernel.bound_text if kernel else "",
        calls=len(kernel.calls) if kernel else 0,
        **values,
    )


def _dependencies(scheduled: Iterable[TemplateNode]) -> dict[int, tuple[int, ...]]:
    """Return for each node the last nodes before it that wrote what it reads."""
    writer: dict[str, int] = {}
    writers = {}
    for node in scheduled:
        writers[node.pk] = tuple(
            dict.fromkeys(writer[name] for name in node.reads if name in writer)
        )
        writer |= dict.fromkeys(node.writes, node.pk)
    return writers


def _view_nodes(
    graph: Graph,
    scheduled: Iterable[TemplateNode],
    served: Mapping[int, ServingKernel],
) -> tuple[ViewNode, ...]:
    """Return the model's nodes with the edges between them, and where they are computed (2
    queries)."""
    computed: dict[tuple[int, str], KernelLines] = {}
    uses = KernelUse.objects.filter(
        template_node__graph=graph, kernel__name__in={row.kernel for row in served.values()}
    )
    for node_id, kernel, origins in uses.values_list(
        "template_node", "kernel__name", "line_origins"
    ):
        if node_id in served and served[node_id].kernel == kernel:
            for name, lines in lines_by_node(origins).items():
                url = f"{served[node_id].url}&{urlencode({'of': name})}"
                computed[node_id, name] = KernelLines(kernel, url, lines)
    owners: dict[str, list[TemplateNode]] = {}
    for node in scheduled:
        for member in node.graph_nodes.all():
            owners.setdefault(member.name, []).append(node)
    for nodes in owners.values():  # prefer the loop to the nodes that prepare it
        nodes.sort(key=lambda node: (node.kind != TemplateNode.LOOP, node.position))
    writes: dict[str, list[str]] = {}
    for tensor in graph.inputs:
        for node_name in tensor.get("written_by", ()):
            writes.setdefault(node_name, []).append(tensor.get("source_name") or tensor["name"])
    rows = list(
        GraphNode.objects.filter(graph=graph)
        .only("name", "target", "inputs", "outputs", "module_path", "frames", "graph_id")
        .order_by("position")
    )
    maker = {output: row.name for row in rows for output in row.outputs}
    return tuple(
        ViewNode(
            name=row.name,
            op=row.target.removeprefix("aten.").removesuffix(".default"),
            kind=owners[row.name][0].kind if row.name in owners else "view",
            module=row.module_path,
            source=f"{frame['file']}:{frame['line']}" if (frame := own_frame(row.frames)) else "",
            inputs=tuple(dict.fromkeys(maker[name] for name in row.inputs if name in maker)),
            scheduled=tuple(node.pk for node in owners.get(row.name, ())),
            computed=tuple(
                computed[node.pk, row.name]
                for node in owners.get(row.name, ())
                if (node.pk, row.name) in computed
            ),
            writes=tuple(writes.get(row.name, ())),
        )
        for row in rows
    )
