"""Where one is: the menus of the bar, and the trail of every page."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from codegen_app.tuning.models import TuningTask
from codegen_app.web import navigation
from codegen_app.workers.models import State
from tests.app import factories, track_factories
from tests.support import every_page
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
# Pages of no group: those about the account, and the search.
_OF_NO_GROUP = {"search", "search-nothing", "password", "components", "not-found"}


def current(page: str) -> list[str]:
    """The titles of the bar that are marked as the place of the page."""
    bar = page[page.index('<header class="topbar">') : page.index("</header>")]
    marked = re.findall(r'<(?:summary|a) [^>]*aria-current="(?:true|page)"[^>]*>(.*?)</', bar, re.S)
    return [unescape(re.sub(r"<[^>]+>", " ", text)).strip() for text in marked]


def trail(page: str) -> list[str]:
    """The breadcrumbs of the page."""
    found = re.search(r'<nav class="stages".*?</nav>', page, re.S)
    stages = re.findall(r"data-stage>(.*?)</", found[0], re.S) if found else []
    return [unescape(text).strip() for text in stages]


def test_every_page_is_in_a_group_and_names_its_place(admin_client: Client, world: World) -> None:
    every_page.furnish(world.graph)
    titles = {group.title for group in navigation.GROUPS}
    lost = []
    for name, address in every_page.available()[0].items():
        page = admin_client.get(address, follow=True).content.decode()
        marked = current(page)
        is_listed = address.partition("?")[0] in {reverse(one.name) for one in navigation.PAGES}
        if name == "overview":
            assert marked == ["Kiln"]
        elif name not in _OF_NO_GROUP and (
            len(marked) != 2 or marked[0].split()[0] not in titles or not (is_listed or trail(page))
        ):
            lost.append((name, marked, trail(page)))
    assert not lost


def test_the_trail_goes_from_the_graph_to_the_kernel(reader: Client, world: World) -> None:
    node, kernel = world.nodes[0], world.kernels[0]
    graph = world.graph
    opened = reader.get(kernel.get_absolute_url()).content.decode()
    assert trail(opened)[:2] == ["Graphs", graph.name]
    assert trail(opened)[2].startswith(node.name)
    assert trail(opened)[-1] == kernel.name
    assert trail(reader.get(node.get_absolute_url()).content.decode())[:2] == ["Graphs", graph.name]
    series = track_factories.series(points=1)
    assert trail(reader.get(f"/series/{series.pk}").content.decode())[0] == "Series"


def test_only_staff_is_offered_the_admin(reader: Client, admin_client: Client) -> None:
    assert 'href="/admin/"' not in reader.get("/glossary").content.decode()
    assert 'href="/admin/"' in admin_client.get("/glossary").content.decode()


def test_open_regressions_and_running_runs_are_counted_in_the_bar(reader: Client) -> None:
    track_factories.regression("gemm")
    for _ in range(2):
        task = factories.task()
        TuningTask.objects.filter(pk=task.pk).update(
            state=State.RUNNING, lease_until="2100-01-01T00:00Z", claim="c", worker="w"
        )
    page = reader.get("/glossary").content.decode()
    assert re.findall(r'title="Open regressions">(.*?)<', page) == ["1", "1"]
    assert re.findall(r'title="Running runs">(.*?)<', page) == ["2", "2"]


def test_the_login_page_has_no_numbers(client: Client) -> None:
    track_factories.regression("gemm")
    page = client.get("/login/").content.decode()
    assert 'class="topbar"' in page
    assert "Open regressions" not in page


def test_the_login_page_has_no_breadcrumbs(client: Client) -> None:
    """The address of the page to return to is not a neighbour."""
    page = client.get("/login/?next=/import").content.decode()
    assert "Breadcrumbs" not in page
    assert "This page requires login" in page
