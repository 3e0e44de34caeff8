"""Coverage of a graph: how many of the nodes with a kernel have a measured time.

A list of graphs and a graph's own page show the same figures: those of the first bucket, for the
kernel selected for each node there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codegen_app.graphs.models import TemplateNode
from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.models import Selection
from codegen_app.tuning.queries import serving

#: The newest graphs among which the one that pages show by default is searched.
FEATURED_OF = 12


@dataclass(frozen=True)
class Coverage:
    """``measured`` of the ``with_kernel`` scheduled nodes have a time; ``missing`` counts the
    others by kind."""

    measured: int = 0
    with_kernel: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    emulated: bool = False

    def __str__(self) -> str:
        return f"{self.measured} of {self.with_kernel}"

    @property
    def is_whole(self) -> bool:
        """Whether every node that has a kernel has a time."""
        return self.measured == self.with_kernel

    @property
    def missing_text(self) -> str:
        """The nodes without a time by kind: ``3 attention, 9 pointwise``."""
        return ", ".join(f"{count} {kind}" for kind, count in self.missing.items())


def count_coverage(kinds: Iterable[tuple[str, bool]], *, emulated: bool) -> Coverage:
    """Count nodes that have a kernel, each given as its kind and whether it is measured."""
    kinds = list(kinds)
    missing = Counter(kind for kind, is_measured in kinds if not is_measured)
    return Coverage(
        measured=len(kinds) - missing.total(),
        with_kernel=len(kinds),
        missing=dict(missing.most_common()),
        emulated=emulated,
    )


def featured_graph(coverages: Mapping[int, Coverage]) -> int | None:
    """Return the graph that pages show by default, of these, the newest first; None if there are
    none. Graphs of which at least half is measured come first, since the hottest of two nodes in
    fourteen says little; then those with times of a device, not of an emulation; then those with
    the most measured nodes; then the newest."""

    def importance(graph: int) -> tuple[bool, bool, int]:
        coverage = coverages[graph]
        is_half_measured = 0 < coverage.with_kernel <= 2 * coverage.measured
        is_of_a_device = coverage.measured > 0 and not coverage.emulated
        return is_half_measured, is_of_a_device, coverage.measured

    return max(coverages, key=importance, default=None)


def graph_coverages(graphs: Collection[int]) -> dict[int, Coverage]:
    """Return the coverage of each of these graphs, in their order, as its own page initially shows
    it (4 queries)."""
    nodes_by_graph: dict[int, list[TemplateNode]] = defaultdict(list)
    rows = TemplateNode.objects.filter(graph__in=graphs, problem__isnull=False)
    for node in rows.select_related("problem").only("graph_id", "kind", "problem__symbols"):
        nodes_by_graph[node.graph_id].append(node)
    problems = {node.problem_id or 0 for nodes in nodes_by_graph.values() for node in nodes}
    default_uses = KernelUse.objects.filter(template_node__graph__in=graphs, is_default=True)
    defaults = dict(default_uses.values_list("template_node", "kernel"))
    measured: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in serving.bucket_rows(problems, "problem", "kernel"):
        measured[row["problem"]].append(row)
    selected: dict[int, list[Selection]] = defaultdict(list)
    for selection in serving.current_selections(problems):
        selected[selection.problem_id].append(selection)
    coverages = {graph: Coverage() for graph in graphs}
    for graph, nodes in nodes_by_graph.items():
        symbols = {node.problem.pk: node.problem.symbols for node in nodes if node.problem}
        used = frozenset(name for names in symbols.values() for name in names)
        graph_selections = tuple(row for pk in symbols for row in selected[pk])
        graph_rows = [row for pk in symbols for row in measured[pk]]
        buckets = serving.rank_buckets(graph_rows, graph_selections, used)
        known = serving.NodeBuckets(tuple(nodes), buckets, graph_selections)
        bucket = known.find("")
        in_bucket = known.selections(bucket)
        kinds = []
        for node in nodes:
            problem = node.problem_id or 0
            served = in_bucket.get(problem)
            kernel = served.kernel_id if served is not None else defaults.get(node.pk)
            if kernel is not None:
                is_measured = bucket is not None and any(
                    row["kernel"] == kernel and _is_in_bucket(row, node, bucket)
                    for row in measured[problem]
                )
                kinds.append((node.kind, is_measured))
        emulated = bucket is not None and bucket.emulated
        coverages[graph] = count_coverage(kinds, emulated=emulated)
    return coverages


def _is_in_bucket(row: Mapping[str, Any], node: TemplateNode, bucket: serving.Bucket) -> bool:
    """Whether a row's measurements of a node's problem are in this bucket."""
    base = serving.base_source_file(bucket.target)
    return (
        (row["device"], row["arch"]) == (bucket.device_name, bucket.target)
        and (row["toolchain"] == bucket.toolchain or row["file"] != base)
        and node.problem is not None
        and serving.same_sizes(row["bindings"], bucket.bindings, node.problem.symbols)
    )
