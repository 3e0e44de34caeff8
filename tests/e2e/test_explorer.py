"""Exploring trials by mouse and keys: what is brushed in one plot the table and all others follow,
and the address has it."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.workers.models import State
from tests.app import factories
from tests.support.trials_world import TrialsWorld, make_trials

pytestmark = pytest.mark.full


@pytest.fixture
def made(transactional_db: None) -> TrialsWorld:
    return make_trials()


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.locator("[data-plot=explorer-trials]").scroll_into_view_if_needed()
    expect(page.locator("[data-plot=explorer-trials] .scatterlayer .point").first).to_be_visible()


def filter_of(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("filter", [""])[0]


def dragged(
    page: Page, over: Locator, start: tuple[float, float], end: tuple[float, float]
) -> None:
    """A box from one place to another, as shares of what it is drawn over."""
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    x, y = (
        (lambda share: box["x"] + share * box["width"]),
        (lambda share: box["y"] + share * box["height"]),
    )
    page.mouse.move(x(start[0]), y(start[1]))
    page.mouse.down()
    page.mouse.move(x(sum((start[0], end[0])) / 2), y(sum((start[1], end[1])) / 2), steps=4)
    page.mouse.move(x(end[0]), y(end[1]), steps=4)
    page.mouse.up()


def kept(page: Page) -> set[int]:
    found: list[int] = json.loads(page.locator("#explorer-matching").text_content() or "null")
    return set(found)


def test_a_box_in_the_plot_of_trials_filters_table_plots_and_address(
    page: Page, made: TrialsWorld
) -> None:
    opened(page, f"{made.node.get_absolute_url()}?x=BLOCK_M")
    area = page.locator("[data-plot=explorer-trials] .nsewdrag").first
    # The columns of 128 and 256, and of these the faster half of the plot.
    dragged(page, area, (0.48, 0.5), (0.79, 0.999))
    expect(page).to_have_url(re.compile("filter="))
    words = filter_of(page).split()
    assert words[:2] == ["BLOCK_M>=128", "BLOCK_M<=256"]
    low = next(float(word[8:]) for word in words if word.startswith("median>="))
    high = next(float(word[8:]) for word in words if word.startswith("median<="))
    configs = dict(KernelUse.objects.values_list("position", "kernel__config"))
    expected = {
        position
        for position, time in made.times.items()
        if configs[position]["BLOCK_M"] >= 128 and low <= time <= high
    }
    assert 4 <= len(expected) < len(made.times)
    expect(page.locator("#candidates tbody tr")).to_have_count(len(expected))
    assert kept(page) == expected
    note = page.locator("[data-brushed]")
    expect(note).to_contain_text(f"{len(expected)} of ")
    expect(page.locator(".parallel .left-out")).to_have_count(1)
    expect(page.locator(".tick[aria-label^='BLOCK_M 128,']")).to_have_attribute(
        "aria-checked", "true"
    )
    page.wait_for_function(
        """(least) => [...document.querySelectorAll("[data-plot=explorer-trials] .point")]
            .filter((one) => Number(one.style.opacity) < 0.5).length >= least""",
        arg=len(made.times) - len(expected),
    )

    page.reload()
    expect(page.locator("#candidates tbody tr")).to_have_count(len(expected))
    expect(page.locator("[data-brushed]")).to_contain_text(f"{len(expected)} of ")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#candidates tbody tr")).to_have_count(len(configs))
    expect(page).not_to_have_url(re.compile("filter="))
    page.go_back()
    expect(page.locator("#candidates tbody tr")).to_have_count(len(expected))
    expect(page.locator("[data-filter-box]")).to_have_value(re.compile("BLOCK_M>=128"))


def test_the_title_below_a_narrow_plot_is_whole(page: Page, made: TrialsWorld) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    opened(page, made.node.get_absolute_url())
    plot = page.locator("[data-plot=explorer-trials]")
    title = plot.locator(".infolayer [class$=xtitle], .infolayer .xtitle").first
    expect(title).to_contain_text("trial")
    outer, inner = plot.bounding_box(), title.bounding_box()
    assert outer is not None and inner is not None
    assert inner["x"] >= outer["x"]
    assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]
    assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]


def test_a_box_around_what_failed_keeps_those(page: Page, made: TrialsWorld) -> None:
    opened(page, f"{made.run.get_absolute_url()}?x=BLOCK_M")
    area = page.locator("[data-plot=explorer-trials] .nsewdrag[data-subplot=xy2]")
    dragged(page, area, (0.001, 0.001), (0.999, 0.999))
    expect(page).to_have_url(re.compile("filter="))
    failed = Candidate.objects.filter(kernel__isnull=False).exclude(state=State.DONE)
    expect(page.locator("#ledger tbody tr")).to_have_count(failed.count())
    assert kept(page) == set(failed.values_list("pk", flat=True))


def test_parallel_coordinates_are_brushed_by_mouse_and_by_keys(
    page: Page, made: TrialsWorld
) -> None:
    opened(page, made.node.get_absolute_url())
    axis = page.locator(".parallel .axis", has_text="BLOCK_M").locator(".drag")
    dragged(page, axis, (0.2, 0.22), (0.2, 0.5))  # above the places of 64 and 32
    expect(page).to_have_url(re.compile("filter=BLOCK_M"))
    assert filter_of(page) == "BLOCK_M>=128 BLOCK_M<=256"

    # One stop of the Tab key for all of them; arrows walk, Enter picks.
    assert page.locator(".parallel .tick[tabindex='0']").count() == 1
    tick = page.locator(".parallel .tick[tabindex='0']")
    tick.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    name = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert re.match(r"(layout|STAGES) ", name)
    page.keyboard.press("Enter")
    expect(page.locator(".parallel .tick[aria-checked='true']:focus")).to_have_count(1)
    parameter, value = name.split(",")[0].split(" ")
    expect(page).to_have_url(re.compile(rf"{parameter}(==|%3D%3D){value}\b"))
    page.keyboard.press("Delete")
    expect(page).not_to_have_url(re.compile(parameter))
    assert filter_of(page) == "BLOCK_M>=128 BLOCK_M<=256"


def test_a_cell_and_a_box_filter_by_their_values(page: Page, made: TrialsWorld) -> None:
    opened(page, f"{made.node.get_absolute_url()}?across=BLOCK_M&down=BLOCK_N")
    grid = page.locator("[data-plot=explorer-grid] .nsewdrag").first
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.12 * box["width"], box["y"] + 0.8 * box["height"])
    page.mouse.click(box["x"] + 0.12 * box["width"], box["y"] + 0.8 * box["height"])
    expect(page).to_have_url(re.compile("filter="))
    assert sorted(filter_of(page).split()) == ["BLOCK_M==32", "BLOCK_N==32"]
    expect(page.locator("#candidates tbody tr")).to_have_count(4)


def test_a_run_of_several_nodes_filters_the_node_that_is_shown(
    page: Page, transactional_db: None
) -> None:
    made = make_trials(nodes=2)
    opened(page, made.run.get_absolute_url())
    page.locator(".tick[aria-label^='layout row']").click()
    expect(page).to_have_url(re.compile("filter="))
    assert filter_of(page) == "node==op0 layout==row"
    expect(page.locator("#ledger tbody tr")).to_have_count(24)
    page.locator("#id_of").select_option("op1")
    page.locator(".explorer-axes").first.get_by_role("button", name="Show").click()
    expect(page.locator("#explorer-title")).to_contain_text("op1")
    expect(page).not_to_have_url(re.compile("filter=."))  # it was of the other node
    expect(page.locator("#importance")).to_have_count(0)
    expect(page.get_by_text("2 trials have a time")).to_be_visible()


@pytest.mark.parametrize("waiting", [False, True], ids=["nothing known", "nothing timed"])
def test_the_plots_of_a_run_come_with_its_first_times(
    page: Page, transactional_db: None, waiting: bool
) -> None:
    """Of one that was opened before there was a candidate, or a time of one; without loading it
    again. What was measured last is there when the run is over."""
    made = make_trials(state=State.RUNNING)
    tasks = TuningTask.objects.filter(run=made.run)
    started = made.run.started_at
    early = TuningRun.objects.create(
        graph=made.graph,
        device="rocm:0",
        target="gfx942",
        bindings={"s0": 512},
        state=State.RUNNING,
        planned_at=timezone.now(),
        started_at=started,
    )
    if waiting:
        task = factories.task(run=early)
        factories.candidate(task, config={"BLOCK_M": 32})
    page.goto(early.get_absolute_url())
    page.wait_for_selector("html[data-ready]")
    expect(page.locator("[data-plot]")).to_have_count(0)
    expect(page.get_by_role("heading", name="Trials")).to_have_count(int(waiting))
    page.evaluate("window.isTheSame = true")

    with transaction.atomic():
        TuningTask.objects.filter(run=early).delete()
        tasks.update(run=early)
        late = Candidate.objects.filter(task__run=early, result__isnull=False).latest("position")
        elsewhere = factories.task(run=made.run)
        Candidate.objects.filter(pk=late.pk).update(task=elsewhere)
    points = page.locator("[data-plot=explorer-trials] .scatterlayer .point")
    expect(points.first).to_be_visible()
    expect(page.locator("[data-parallel] svg")).to_be_visible()
    timed = len(made.times)
    trials = page.locator("#explorer header .note")
    expect(trials).to_contain_text(f"{timed - 1} of")
    page.locator(".tick[aria-label^='layout row']").click()
    expect(page).to_have_url(re.compile("filter=layout"))

    with transaction.atomic():
        Candidate.objects.filter(pk=late.pk).update(task=TuningTask.objects.get(run=early))
        over = {"state": State.DONE, "finished_at": timezone.now()}
        TuningRun.objects.filter(pk=early.pk).update(**over)
    said = page.locator("#explorer-states [data-outcome=measured]")
    expect(said).to_contain_text(f"{timed}")
    expect(page.locator("#live[hx-get]")).to_have_count(0)
    data = json.loads(page.locator("#explorer-data").text_content() or "null")
    assert len(data["rows"]) == early.tasks.get().candidates.filter(kernel__isnull=False).count()
    expect(page.locator("[data-brushed]")).to_contain_text(f"of {len(data['rows'])} trials")
    assert page.evaluate("window.isTheSame")


def test_the_tables_have_the_figures_without_a_script(
    browser: object, live_server: object, session: str, made: TrialsWorld
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)  # type: ignore[attr-defined]
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])  # type: ignore[attr-defined]
    page = context.new_page()
    page.goto(
        f"{made.node.get_absolute_url()}?filter=BLOCK_M==128"
    )  # as a link in the table has it
    expect(page.locator("#importance")).to_contain_text("BLOCK_M")
    page.get_by_text("Times by value, as a table").click()
    expect(page.locator("#slices")).to_contain_text("Lower quartile")
    expect(page.locator("#candidates tbody tr")).to_have_count(12)
    context.close()
