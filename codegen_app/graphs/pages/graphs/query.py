"""The list of graphs, with their builds, runs and coverage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import Build
from codegen_app.tuning.queries.coverage import Coverage, graph_coverages
from codegen_app.web.row import build_row
from codegen_app.workers.models import State


@dataclass(frozen=True)
class TargetBuilds:
    """Builds of one graph's kernels for one target, by state."""

    target: str
    done: int
    rejected: int
    open: int

    @property
    def total(self) -> int:
        """The number of requested builds."""
        return self.done + self.rejected + self.open


@dataclass(frozen=True)
class GraphRow:
    """One graph in a list. ``measured`` is the number of its nodes with a time, as its own page
    initially shows it."""

    id: int
    url: str
    name: str
    digest: str
    state: str
    reason: str
    node_count: int
    template_nodes: int
    externs: int
    kernels: int
    builds: tuple[TargetBuilds, ...]
    measured: Coverage
    created_at: datetime


@dataclass(frozen=True)
class GraphList:
    """The page of all graphs."""

    graphs: tuple[GraphRow, ...]


def graph_list() -> GraphList:
    """Return all graphs, newest first (7 queries)."""
    return GraphList(graph_rows(Graph.objects.all()))


_EXTERN = Q(problem__isnull=True) & ~Q(kind=TemplateNode.LOOP)


def graph_rows(graphs: QuerySet[Graph]) -> tuple[GraphRow, ...]:
    """Return rows for these graphs (7 queries)."""
    chosen = list(graphs.defer("tensors", "inputs", "decisions", "wrapper", "detail"))
    ids = [graph.pk for graph in chosen]
    nodes = {
        row["graph"]: row
        for row in TemplateNode.objects.filter(graph__in=ids)
        .order_by()
        .values("graph")
        .annotate(
            total=Count("pk", distinct=True),
            externs=Count("pk", distinct=True, filter=_EXTERN),
            candidates=Count("uses__kernel", distinct=True),
        )
    }
    builds = builds_of_graphs(ids)
    measured = graph_coverages(ids)
    return tuple(
        build_row(
            GraphRow,
            graph,
            id=graph.pk,
            url=graph.get_absolute_url(),
            template_nodes=nodes.get(graph.pk, {}).get("total", 0),
            externs=nodes.get(graph.pk, {}).get("externs", 0),
            kernels=nodes.get(graph.pk, {}).get("candidates", 0),
            builds=builds.get(graph.pk, ()),
            measured=measured.get(graph.pk, Coverage()),
        )
        for graph in chosen
    )


def builds_of_graphs(graph_ids: Sequence[int]) -> dict[int, tuple[TargetBuilds, ...]]:
    """Return builds of each graph's kernels by target (1 query)."""
    counts: dict[int, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    rows = (
        Build.objects.filter(kernel__uses__template_node__graph__in=graph_ids)
        .order_by("target")
        .values("kernel__uses__template_node__graph", "target", "state")
        .annotate(count=Count("pk", distinct=True))
    )
    for row in rows:
        graph = row["kernel__uses__template_node__graph"]
        counts[graph][row["target"]][row["state"]] += row["count"]
    return {
        graph: tuple(
            TargetBuilds(
                target,
                done=states[State.DONE],
                rejected=states[State.REJECTED] + states[State.QUARANTINED],
                open=states[State.QUEUED] + states[State.RUNNING],
            )
            for target, states in targets.items()
        )
        for graph, targets in counts.items()
    }
