"""Where the selections of a run are in use: graphs, and the bundles packed for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from codegen_app.graphs.models import TemplateNode
from codegen_app.kernels.models import Packing
from codegen_app.tuning.models import Selection
from codegen_app.workers.models import State

MAX_GRAPHS = 50


@dataclass(frozen=True)
class SelectionUse:
    """A graph with nodes that use selected kernels, and its latest bundle of their times.

    ``bundle_is_current``: the bundle was begun after the kernels were selected. ``pack_url`` is
    where a new one is requested; "" if the times are emulated, which select nothing in a bundle.
    """

    graph: str
    graph_url: str
    nodes: int
    bundle: int | None
    bundle_url: str
    bundle_is_current: bool
    pack_url: str


def selection_uses(selections: Collection[Selection]) -> tuple[SelectionUse, ...]:
    """Return the graphs whose nodes use current selections, each with its result and environment
    loaded; the newest graphs first, at most ``MAX_GRAPHS`` (2 queries)."""
    since: dict[int, datetime] = {}
    for row in selections:
        since[row.problem_id] = max(row.since, since.get(row.problem_id, row.since))
    # 0 matches none: the same queries without selections.
    nodes = TemplateNode.objects.filter(problem__in=[0, *since]).select_related("graph")
    nodes = nodes.only("problem_id", "graph_id", "graph__name").order_by("-graph", "position")
    by_graph: dict[int, list[TemplateNode]] = {}
    for node in nodes:
        by_graph.setdefault(node.graph_id, []).append(node)
    shown = dict(list(by_graph.items())[:MAX_GRAPHS])
    bundles: dict[int, Packing] = {}
    packed = Packing.objects.filter(graph__in=[0, *shown], use=None, state=State.DONE)
    buckets = {", ".join((row.device_name, row.target, row.toolchain)) for row in selections}
    for packing in packed.order_by("finished_at", "pk"):
        # Sizes follow the bucket's other parts.
        times = f"{packing.times}, "
        if not packing.times or any(times.startswith(f"{bucket}, ") for bucket in buckets):
            bundles[packing.graph_id] = packing
    is_emulated = all(row.result is not None and row.result.emulated for row in selections)
    uses = []
    for key, graph_nodes in shown.items():
        bundle = bundles.get(key)
        latest = max(since[node.problem_id or 0] for node in graph_nodes)
        uses.append(
            SelectionUse(
                graph=graph_nodes[0].graph.name,
                graph_url=graph_nodes[0].graph.get_absolute_url(),
                nodes=len(graph_nodes),
                bundle=bundle.pk if bundle else None,
                bundle_url=bundle.get_absolute_url() if bundle else "",
                bundle_is_current=bool(
                    bundle and bundle.started_at and bundle.started_at >= latest
                ),
                pack_url="" if is_emulated else reverse("pack", args=[key]),
            )
        )
    return tuple(uses)
