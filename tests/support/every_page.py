"""Every page of the site, once: what is looked at, measured and checked, each by a row there is.

One list for all that takes every page: the browser tests, ``make screenshots`` and the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Max, Model, QuerySet

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import Build, ForeignKernel, GeneratedKernel, Packing
from codegen_app.tracking.models import (
    QUIET_KINDS,
    Alert,
    AlertKind,
    Budget,
    Change,
    Channel,
    Datum,
    PatternRule,
    Series,
)
from codegen_app.tuning.models import TuningRun
from codegen_app.workers.models import State as Of
from tests.app import track_factories
from tests.support.foreign_kernels import looked_at


class NoRowError(LookupError):
    """The database has nothing that the page could show; the text says what is missing."""


NOWHERE = "/nowhere"  # an address without a page


def addresses() -> dict[str, str]:
    """The address of every page by its name, in the order of the site's bar.

    Raises ``NoRowError`` where a row is missing; ``available`` leaves such pages out.
    """
    return {name: address() for name, address in PAGES.items()}


def available() -> tuple[dict[str, str], dict[str, str]]:
    """The pages that there are rows for, and of the others what is missing."""
    found, missing = {}, {}
    for name, address in PAGES.items():
        try:
            found[name] = address()
        except NoRowError as error:
            missing[name] = str(error)
    return found, missing


def furnish(graph: Graph) -> None:
    """Rows for the pages that a small world of kernels has nothing to show on: a history with a
    change, its alert, a series that went silent, a channel, a bundle, somebody's kernel, a person
    who administers."""
    title = "a problem whose name is longer than a narrow screen " * 3
    track_factories.regression("gemm", title)
    track_factories.missing()
    change = Change.objects.latest("pk")
    Series.objects.filter(pk=change.series_id).update(points=1, last_at=change.at)
    track_factories.rule(problem=["gemm*", "a problem with a long name " * 6])
    track_factories.budget(problem=["gemm*"])
    track_factories.channel("kernel team", address="https://hooks.example.org/" + "long" * 30)
    Packing.objects.create(graph=graph, key="k", kernels=2)
    looked_at("a-long-name-of-a-kernel-that-another-team-wrote-for-an-instinct-board.s")
    User.objects.create_superuser("admin-of-pages", password="secret-secret")


def _first(rows: QuerySet[Any], what: str) -> Any:
    row = rows.first()
    if row is None:
        raise NoRowError(f"there is no {what}")
    return row


def _page(row: Model) -> str:
    address: str = row.get_absolute_url()  # type: ignore[attr-defined]
    return address


def graph() -> Graph:
    """The graph with the most measured candidates: the page with the most to show."""
    found: Graph = _first(
        Graph.objects.annotate(n=Count("template_nodes__problem__results")).order_by("-n", "pk"),
        "graph",
    )
    return found


def node() -> TemplateNode:
    """Of that graph the node with the most."""
    found: TemplateNode = _first(
        TemplateNode.objects.filter(graph=graph())
        .annotate(n=Count("problem__results"))
        .order_by("-n", "position"),
        "scheduled node",
    )
    return found


def builds() -> tuple[Build, Build]:
    """Builds of two kernels that serve the same node, for one target, with listings: of the node
    with the most of them."""
    done = Build.objects.filter(state=Of.DONE, listing__isnull=False).exclude(target="cpu")
    most = (
        done.values("kernel__uses__template_node", "target")
        .annotate(n=Count("kernel", distinct=True))
        .filter(n__gt=1, kernel__uses__template_node__isnull=False)
        .order_by("-n", "target", "kernel__uses__template_node")
        .first()
    )
    if most is None:
        raise NoRowError("there are no two builds to compare")
    node_of, target = most["kernel__uses__template_node"], most["target"]
    rows = done.filter(kernel__uses__template_node=node_of, target=target)
    one, other = rows.order_by("kernel_id", "pk").distinct("kernel_id")[:2]
    return one, other


def run() -> TuningRun:
    """The run with the most candidates that were measured."""
    found: TuningRun = _first(
        TuningRun.objects.annotate(n=Count("tasks__candidates__result")).order_by("-n", "pk"), "run"
    )
    return found


def series() -> Series:
    """The series with the most points."""
    found: Series = _first(Series.objects.filter(points__gt=0).order_by("-points", "pk"), "series")
    return found


def alert() -> Alert:
    """The alert of the most series."""
    of_changes = Alert.objects.exclude(kind__in=(AlertKind.MISSING, *QUIET_KINDS))
    found: Alert = _first(of_changes.order_by("-n_series", "pk"), "alert of a change")
    return found


def _kernel() -> GeneratedKernel:
    return builds()[0].kernel


def _compare() -> str:
    one, other = builds()
    return f"/compare?build={one.pk}&build={other.pk}"


def _change() -> Change:
    changes = Change.objects.annotate(last=Max("series__points")).order_by("-last", "pk")
    found: Change = _first(changes, "change")
    return found


def _point() -> str:
    return _page(_first(Datum.objects.filter(series=_change().series).order_by("pk"), "point"))


def _silent() -> str:
    return _page(_first(Alert.objects.filter(kind=AlertKind.MISSING), "alert of a silent series"))


def _admin_row() -> str:
    return f"/admin/codegen_app/tuningrun/{run().pk}/change/"


def _fixed(address: str) -> Callable[[], str]:
    return lambda: address


PAGES: dict[str, Callable[[], str]] = {
    "overview": _fixed("/"),
    "graphs": _fixed("/graphs"),
    "graph": lambda: _page(graph()),
    "graph-nodes": lambda: f"{_page(graph())}?view=nodes",
    "graph-fusion": lambda: f"{_page(graph())}?view=fusion",
    "graph-wrapper": lambda: f"{_page(graph())}?view=wrapper",
    "node": lambda: _page(node()),
    "kernels": _fixed("/kernels"),
    "kernel": lambda: f"{_page(_kernel())}?build={builds()[0].pk}",
    "compare": _compare,
    "runs": _fixed("/runs"),
    "run": lambda: _page(run()),
    "retune": lambda: f"/retune?node={node().pk}",
    "series": _fixed("/series"),
    "history": lambda: _page(series()),
    "point": _point,
    "change": lambda: _page(_change()),
    "thresholds": lambda: f"/series/{series().pk}/thresholds?try=1",
    "compare-revisions": _fixed("/compare/revisions"),
    "alerts": _fixed("/alerts?state=all"),
    "alert": lambda: _page(alert()),
    "alert-actions": lambda: f"{_page(alert())}/actions",
    "alert-silent": _silent,
    "rules": _fixed("/rules?try=1&decides=thresholds&least_effect=5"),
    "rule": lambda: _page(_first(PatternRule.objects.order_by("position"), "rule")),
    "team": _fixed("/team"),
    "budget": lambda: _page(_first(Budget.objects.order_by("pk"), "budget")),
    "selections": _fixed("/selections"),
    "devices": _fixed("/devices"),
    "import": _fixed("/import"),
    "look": _fixed("/look"),
    "look-kernel": lambda: _page(_first(ForeignKernel.objects.order_by("-pk"), "kernel of others")),
    "search": _fixed("/search?q=linear"),
    "search-nothing": _fixed("/search?q=nosuchthing"),
    "ops": _fixed("/ops"),
    "figures": _fixed("/figures?tour=6"),
    "glossary": _fixed("/glossary"),
    "api": _fixed("/api/v1/docs"),
    "channels": _fixed("/channels"),
    "channel": lambda: f"/channels/{_first(Channel.objects.order_by('pk'), 'channel').pk}",
    "tokens": _fixed("/tokens"),
    "password": _fixed("/password"),
    "pack": lambda: f"{_page(graph())}/pack",
    "packing": lambda: _page(_first(Packing.objects.order_by("-pk"), "packed bundle")),
    "components": _fixed("/components"),
    "not-found": _fixed(NOWHERE),
}
# Pages of who is not signed in, and of who administers.
ANONYMOUS = {"login": "/login/"}
ADMIN: dict[str, Callable[[], str]] = {
    "admin": _fixed("/admin/"),
    "admin-runs": _fixed("/admin/codegen_app/tuningrun/"),
    "admin-run": _admin_row,
}
