"""The tour: a few pages in order, each with a note, for any reader; and the legend it ends with."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from codegen_app.tuning.models import TuningRun
from codegen_app.web.figures import FIGURE_KINDS
from codegen_app.web.tour import TOUR
from codegen_app.workers.models import State
from tests.support import alerts
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db


def stop(client: Client, step: str) -> str:
    answer = client.get(f"/tour/{step}")
    assert answer.status_code == 302
    return answer.headers["Location"]


def test_each_step_has_its_page_and_its_note(reader: Client, world: World) -> None:
    TuningRun.objects.update(state=State.DONE, finished_at=timezone.now())
    alert = alerts.alert()
    alerts.change(alert)
    paths = [stop(reader, str(number)).partition("?")[0] for number in range(1, len(TOUR) + 1)]
    assert paths == [
        "/",
        world.graph.get_absolute_url(),
        world.kernels[0].get_absolute_url(),
        world.run.get_absolute_url(),
        alert.get_absolute_url(),
        "/figures",
    ]
    for number, step in enumerate(TOUR, 1):
        page = reader.get(stop(reader, str(number))).content.decode()
        note = page.partition('<aside class="tour"')[2].partition("</aside>")[0]
        assert step.title in note
        assert f"{number} of {len(TOUR)}" in note
        assert (f'href="/tour/{number + 1}">Next</a>' in note) is (number < len(TOUR))
    assert '<aside class="tour"' not in reader.get("/").content.decode(), "only who takes it"


def test_steps_without_a_page_on_the_site_are_passed_over(reader: Client) -> None:
    assert stop(reader, "2") == "/figures?tour=6"
    assert stop(reader, "5?back=1") == "/?tour=1"


@pytest.mark.parametrize("step", ["0", "7", "99999999999999999999"])
def test_there_is_no_other_step(step: str, reader: Client) -> None:
    assert reader.get(f"/tour/{step}").status_code == 404
    assert '<aside class="tour"' not in reader.get(f"/?tour={step}").content.decode()


def test_the_legend_says_where_the_figures_of_the_site_come_from(
    reader: Client, world: World
) -> None:
    kinds = reader.get("/figures.json").json()["kinds"]
    assert [row["kind"]["name"] for row in kinds] == [kind.name for kind in FIGURE_KINDS]
    sources = {row["kind"]["name"]: row["sources"] for row in kinds}
    assert sources["emulated"] == ["CPU emulation"]
    assert sources["measured"] == sources["recorded"] == sources["generated"] == []
    page = reader.get("/figures").content.decode()
    assert all(f'<tr id="{kind.name}">' in page for kind in FIGURE_KINDS)
    assert 'href="/figures"' in reader.get(world.run.get_absolute_url()).content.decode()
