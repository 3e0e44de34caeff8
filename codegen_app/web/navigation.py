"""The pages of the bar in five groups, and which of them a request belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve


@dataclass(frozen=True)
class NavPage:
    """A page of the bar: its URL name, its title, and one line about it.

    ``below`` names the URLs of the pages that it leads to, ``aliases`` other words that users may
    search for. ``count`` is the number beside it (``settings.BAR_COUNTS``).
    """

    name: str
    title: str
    note: str
    below: tuple[str, ...] = ()
    aliases: str = ""
    count: str = ""
    staff_only: bool = False


@dataclass(frozen=True)
class NavGroup:
    """A menu of the bar."""

    title: str
    pages: tuple[NavPage, ...] = field(repr=False)

    @property
    def count(self) -> str:
        """The name of the number beside the closed menu."""
        return next((page.count for page in self.pages if page.count), "")


OVERVIEW = NavPage("overview", "Overview", "total time and hottest kernels", aliases="start home")
GROUPS = (
    NavGroup(
        "Graphs",
        (
            NavPage(
                "graphs",
                "Graphs",
                "imported models and their nodes",
                below=("graph", "template_node", "packing", "pack"),
                aliases="models nodes modules",
            ),
            NavPage(
                "import", "Import", "a model or results from a file", aliases="upload pt2 onnx"
            ),
            NavPage("ops", "Ops", "which ops have generated kernels", aliases="aten coverage"),
        ),
    ),
    NavGroup(
        "Kernels",
        (
            NavPage(
                "kernels",
                "Kernels",
                "resources and times of all kernels",
                below=("kernel", "header", "instruction"),
                aliases="table registers occupancy",
            ),
            NavPage(
                "compare", "Compare kernels", "sources, instructions and times", aliases="diff"
            ),
            NavPage(
                "look",
                "External kernels",
                "model the time of other kernels",
                below=("foreign_kernel",),
                aliases="listing assembly hsaco",
            ),
        ),
    ),
    NavGroup(
        "Tuning",
        (
            NavPage(
                "tuning_runs",
                "Runs",
                "progress and results of tuning",
                below=("tuning_run", "retune"),
                aliases="autotune tuning ledger",
                count="runs",
            ),
            NavPage(
                "selections",
                "Selections",
                "the kernel that each problem uses",
                aliases="choices history restore",
            ),
        ),
    ),
    NavGroup(
        "Tracking",
        (
            NavPage(
                "alerts",
                "Alerts",
                "regressions and improvements",
                below=("alert", "alert_actions"),
                aliases="triage",
                count="alerts",
            ),
            NavPage(
                "series_list",
                "Series",
                "times over revisions, and their changes",
                below=("series", "series_point", "change", "thresholds"),
                aliases="history times points",
            ),
            NavPage(
                "compare_revisions",
                "Compare revisions",
                "two revisions or branches",
                aliases="branches commits",
            ),
            NavPage(
                "team",
                "Team",
                "owners, budgets and assigned alerts",
                below=("budget",),
                aliases="my",
            ),
            NavPage(
                "rules",
                "Rules",
                "thresholds and owners by pattern",
                below=("rule",),
                aliases="codeowners",
            ),
            NavPage(
                "channels",
                "Channels",
                "notifications of alerts",
                below=("channel",),
                aliases="webhook e-mail slack atom",
            ),
        ),
    ),
    NavGroup(
        "Site",
        (
            NavPage("devices", "Devices", "workers and GPUs", aliases="environments queue"),
            NavPage("tokens", "API tokens", "access for programs and CI"),
            NavPage("api_docs", "API", "the HTTP interface", aliases="documentation http openapi"),
            NavPage(
                "figures",
                "Kinds of figures",
                "what each label of a figure means",
                aliases="measured recorded emulated modelled generated legend",
            ),
            NavPage("glossary", "Glossary", "terms of pages and errors", aliases="words help"),
            NavPage("admin:index", "Admin", "accounts, schedules and records", staff_only=True),
        ),
    ),
)
PAGES = (OVERVIEW, *(page for group in GROUPS for page in group.pages))
_PAGE_OF = {name: page for page in PAGES for name in (page.name, *page.below)}
_ADMIN = _PAGE_OF["admin:index"]


def page_of(match: ResolverMatch | None) -> NavPage | None:
    """Return the page of the bar that a URL belongs to; None for a page of no group."""
    if match is None:
        return None
    return _ADMIN if match.namespace == "admin" else _PAGE_OF.get(match.url_name or "")


def page_at(address: str) -> NavPage | None:
    """Return the page of the bar that an address belongs to."""
    try:
        return page_of(resolve(address.partition("?")[0]))
    except Resolver404:
        return None


def visible_pages(group: NavGroup, request: HttpRequest) -> list[NavPage]:
    """Return the group's pages that the reader may open."""
    is_staff = request.user.is_authenticated and request.user.is_staff
    return [page for page in group.pages if is_staff or not page.staff_only]
