"""The menus of the bar, the trail from one of its pages to the page that is shown, and the tour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse

from codegen_app.web import navigation
from codegen_app.web.page import Crumb
from codegen_app.web.pagecache.reader import COUNTS, bar_counts, is_cached_request
from codegen_app.web.tour import TOUR

register = template.Library()

_COUNT_TITLES = {"alerts": "Open regressions", "runs": "Running runs"}


@dataclass(frozen=True)
class MenuItem:
    """A link of a menu. ``is_current``: its page or one below it is shown."""

    title: str
    note: str
    url: str
    count: str
    count_title: str
    is_current: bool


@dataclass(frozen=True)
class Menu:
    """A group of the bar: a menu; ``count`` stands beside its title."""

    title: str
    items: tuple[MenuItem, ...]
    count: str
    count_title: str

    @property
    def current(self) -> MenuItem | None:
        """The item whose page is shown."""
        return next((item for item in self.items if item.is_current), None)


@register.simple_tag(takes_context=True)
def menus(context: Context) -> list[Menu]:
    """Return the groups of the bar. Numbers are placeholders in a cached page, since they change
    more often than the page; the login page works without a database, so it has none."""
    request = context["request"]
    current = navigation.page_of(request.resolver_match)
    counts = _counts(request)
    return [
        Menu(
            title=group.title,
            items=tuple(
                MenuItem(
                    title=page.title,
                    note=page.note,
                    url=reverse(page.name),
                    count=counts.get(page.count, ""),
                    count_title=_COUNT_TITLES.get(page.count, ""),
                    is_current=page is current,
                )
                for page in navigation.visible_pages(group, request)
            ),
            count=counts.get(group.count, ""),
            count_title=_COUNT_TITLES.get(group.count, ""),
        )
        for group in navigation.GROUPS
    ]


def _counts(request: HttpRequest) -> dict[str, str]:
    if not request.user.is_authenticated:
        return {}
    return COUNTS if is_cached_request(request) else bar_counts(request)


@register.simple_tag(takes_context=True)
def trail(context: Context, stages: Iterable[Crumb] = ()) -> list[Crumb]:
    """Return the breadcrumbs of a page below one of the bar: that page, then ``stages``; without
    stages, the title. A page of the bar has none.

    The first link of ``stages`` decides where the trail begins: a kernel that is opened from a
    graph belongs to the graphs.
    """
    crumbs = list(stages)
    match = context["request"].resolver_match
    current = navigation.page_of(match)
    first_url = next((crumb.url for crumb in crumbs if crumb.url), "")
    root = navigation.page_at(first_url) if first_url else current
    if root is None or match is None or (current is not None and match.url_name == current.name):
        return crumbs
    return [Crumb(root.title, reverse(root.name)), *(crumbs or [Crumb(context["title"])])]


@register.simple_tag(takes_context=True)
def tour_step(context: Context) -> dict[str, Any] | None:
    """Return the tour's step that the address names, with the addresses of its neighbours; None
    without one."""
    text = context["request"].GET.get("tour", "")
    if text not in map(str, range(1, len(TOUR) + 1)):
        return None
    number = int(text)
    return {
        "step": TOUR[number - 1],
        "number": number,
        "total": len(TOUR),
        "previous": f"{reverse('tour', args=[number - 1])}?back=1" if number > 1 else "",
        "next": reverse("tour", args=[number + 1]) if number < len(TOUR) else "",
    }
