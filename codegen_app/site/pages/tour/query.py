"""The addresses of the tour's pages on this site."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.urls import reverse

from codegen_app.graphs.models import Graph
from codegen_app.site.pages.overview.changes import overview_changes
from codegen_app.site.pages.overview.start import explained_regression
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.queries.coverage import FEATURED_OF, featured_graph, graph_coverages
from codegen_app.tuning.queries.ranking import kernel_ranking
from codegen_app.web.tour import TOUR
from codegen_app.workers.models import State


def tour_stop(number: int, *, backwards: bool = False) -> tuple[int, str]:
    """Return the number and the address of a step, or of the next one in that direction that this
    site has a page for: the first and the last always have one (17 queries at most)."""
    numbers = range(number, 0, -1) if backwards else range(number, len(TOUR) + 1)
    stops = ((place, _ADDRESSES[TOUR[place - 1].page]()) for place in numbers)
    return next((place, address) for place, address in stops if address)


def _featured_graph() -> Graph | None:
    newest = {graph.pk: graph for graph in Graph.objects.only("name")[:FEATURED_OF]}
    featured = featured_graph(graph_coverages(newest))
    return newest[featured] if featured is not None else None


def _graph() -> str:
    graph = _featured_graph()
    return graph.get_absolute_url() if graph else ""


def _kernel() -> str:
    graph = _featured_graph()
    kernels = kernel_ranking(graph).kernels if graph else ()
    return next((row.page_url for row in kernels), "")


def _run() -> str:
    done = TuningRun.objects.filter(state=State.DONE).order_by("-pk").only("pk").first()
    return done.get_absolute_url() if done else ""


def _alert() -> str:
    alert = explained_regression(overview_changes().worst_regressions)
    return alert.url if alert else ""


_ADDRESSES: Mapping[str, Callable[[], str]] = {
    "overview": lambda: reverse("overview"),
    "graph": _graph,
    "kernel": _kernel,
    "run": _run,
    "alert": _alert,
    "figures": lambda: reverse("figures"),
}
