"""A newcomer's first minutes: from ``make demo`` to one finding, by what the screen says alone.

The demo works while it is looked at. What a page says is therefore held against the database and
against the other pages row by row: a time that was measured stays what it is.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from codegen_app.platform import postgres
from tests.e2e.journeys.figures import cells, numbers, shows, shows_all, under
from tests.support.demos import LIMIT_S, demo, empty_folder, first_line
from tests.support.ports import free_port

pytestmark = pytest.mark.long

#: Models are read, kernels compiled and timed, on a machine that does much else.
WORK_MS = 900_000
PAGE_MS = 120_000
TIMES = 20  # that something may have changed between two pages


@dataclass(frozen=True)
class Demo:
    """One that runs: where it is, its files, and the password that it printed."""

    url: str
    var: Path
    password: str

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What its database answers."""
        with psycopg.connect(postgres.cluster_for(self.var).url("kiln")) as connection:
            return connection.execute(query.encode(), values).fetchall()

    def times_of(self, kernel: str) -> list[tuple[float, float, float, int]]:
        """Every measurement of a kernel: median, ends of its interval in µs, samples."""
        return self.rows(
            "SELECT median_ns / 1000, low_ns / 1000, high_ns / 1000,"
            " cardinality(samples_ns) FROM codegen_app_benchmarkresult result"
            " JOIN codegen_app_generatedkernel kernel ON kernel.id = result.kernel_id"
            " WHERE kernel.name = %s",
            kernel,
        )


@pytest.fixture
def running() -> Iterator[Demo]:
    """The demo in an empty folder; what it prints until somebody can sign in is read."""
    with empty_folder() as var, demo(var, free_port()) as process:
        address = first_line(process).removeprefix("Kiln serves at ").strip()
        assert address.startswith("http://127.0.0.1:")
        password = ""
        while not password:
            said = re.search(r"sign in as admin with the password (\S+) ", first_line(process))
            password = said.group(1) if said else ""
        yield Demo(address.rstrip("/"), var, password)
        process.terminate()
        try:
            process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@pytest.fixture
def newcomer(browser: Browser, running: Demo) -> Iterator[Page]:
    """A browser that has never been here."""
    context = browser.new_context(base_url=running.url, viewport={"width": 1500, "height": 950})
    page = context.new_page()
    page.set_default_timeout(PAGE_MS)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


def test_from_make_demo_to_a_finding_that_one_can_act_on(newcomer: Page, running: Demo) -> None:
    reads_what_it_is(newcomer)
    signs_in(newcomer, running)
    reads_what_costs_most(newcomer, running)
    reads_the_graph(newcomer)
    opens_a_kernel_for_amd(newcomer, running)
    reads_a_line_and_its_instructions(newcomer)
    reads_a_regression(newcomer, running)
    takes_the_tour(newcomer)


def reads_what_it_is(page: Page) -> None:
    """One line says it, also to who is not signed in."""
    page.goto("/")
    expect(page.locator("p.lead")).to_contain_text("generates GPU kernels for a model")


def signs_in(page: Page, running: Demo) -> None:
    """With the name and the password that the terminal shows."""
    page.get_by_role("link", name="Log in").click()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(running.password)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible(timeout=PAGE_MS)
    expect(page.locator("h1")).to_have_text("Overview")


def answer(page: Page, name: str) -> Any:
    """What the overview answers to one of its questions."""
    return page.locator(".summary .answers > div").filter(
        has=page.locator("dt", has_text=re.compile(f"^{name}$"))
    )


def reads_what_costs_most(page: Page, running: Demo) -> None:
    """It comes by itself as soon as something is timed; the time of one call is a measurement of
    its kernel, and the node that it leads to has the same. What is measured meanwhile may change
    all of them: then they are read again."""
    row = page.locator("#ranking tbody tr").first
    expect(row.locator("td.num").nth(3)).to_have_text(re.compile(r"\d"), timeout=WORK_MS)
    differences = []
    for _ in range(TIMES):
        said = page.locator(".summary").inner_text()
        assert ("emulated" in said) != ("recorded" in said), "where the time comes from is said"
        shown = cells(row)
        kernel = str(row.locator("a[href*='/kernels/']").evaluate("a => a.pathname.slice(9)"))
        (total,), (calls,) = numbers(under(shown, "Total")), numbers(under(shown, "Calls"))
        assert 0 < numbers(under(shown, "Share"))[0] <= 100
        times = running.times_of(kernel)
        row.get_by_role("link").first.click()
        page.wait_for_url("**/nodes/*")
        candidate = cells_of_kernel(page, kernel)
        is_measured = any(total == pytest.approx(calls * time[0], rel=2e-3) for time in times)
        if is_measured and candidate:
            (median, *_) = numbers(under(candidate, "Median"))[-1:]
            if total == pytest.approx(calls * median, rel=2e-3):
                return
        differences.append((shown, times, candidate))
        page.goto("/")
        expect(row).to_be_visible()
    pytest.fail(f"overview, database and node never agreed: {differences}")


def cells_of_kernel(page: Page, kernel: str) -> dict[str, str]:
    """The row of a kernel among the candidates; nothing where it is not there."""
    row = page.locator("#candidates tbody tr", has_text=kernel)
    return cells(row) if row.count() else {}


def reads_the_graph(page: Page) -> None:
    """One click up: the sum is that of its rows, and so is every share; it says of how many
    nodes, on which device, at which sizes."""
    node = page.url
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link").first.click()
    page.wait_for_url("**/graphs/*")
    verdict = page.locator("p.verdict").inner_text()
    table = page.locator("#scheduled tbody tr")
    rows = [cells(row) for row in table.all()]
    # A node that was not measured has the lower bound of its time.
    rows = [row for row in rows if "\N{GREATER-THAN OR EQUAL TO}" not in under(row, "Median")]
    timed = [numbers(text)[-1] for row in rows if (text := under(row, "Median"))]
    (total,) = numbers(verdict.splitlines()[0])
    assert total == pytest.approx(sum(timed), rel=2e-3)  # each is rounded to four digits
    for row in rows:
        if text := under(row, "Median"):
            share = 100 * numbers(text)[-1] / total
            assert numbers(under(row, "Share"))[0] == pytest.approx(share, abs=0.2)
    facts = page.locator(".fact-groups").inner_text()
    assert "Measured on" in facts
    assert f"{len(timed)} of " in facts
    page.goto(node)


def opens_a_kernel_for_amd(page: Page, running: Demo) -> None:
    """A candidate that is built for AMD: its listing comes without a reload, and the row of its
    resources says what limits it, and what the next step would be."""
    row = page.locator("#candidates tbody tr", has_text="gfx942").first
    row.get_by_role("link", name=re.compile(r"^(rocm|cutedsl)_")).first.click()
    page.wait_for_url("**/kernels/*")
    kernel = page.locator("h1").inner_text()
    tabs = page.get_by_role("navigation", name="Builds")
    tabs.get_by_role("link", name="gfx942").first.click()
    first = page.locator("[data-pane=listing] .l", has_text="s_load_dword").first
    expect(first).to_be_visible(timeout=WORK_MS)
    shown = page.locator("#resources tr[aria-selected=true]")
    expect(shown.first).to_be_visible()
    ((resources,),) = running.rows(
        "SELECT resources FROM codegen_app_build build"
        " JOIN codegen_app_generatedkernel kernel ON kernel.id = build.kernel_id"
        " WHERE kernel.name = %s AND target = 'gfx942' AND state = 'done'",
        kernel,
    )
    assert shown.count() == len(resources)
    for one in map(cells, shown.all()):
        name = under(one, "Device function").removeprefix("…")
        (figures,) = (found for function, found in resources.items() if function.endswith(name))
        assert shows_all(under(one, "Waves"), figures["occupancy_waves_per_simd"], 8)
        assert shows(under(one, "VGPR"), figures["vgpr"])
        assert under(one, "Limiter") == figures["limiter"]
        assert under(one, "Next step"), "also where nothing is left to do"


def reads_a_line_and_its_instructions(page: Page) -> None:
    """A click on a line of the source marks what became of it."""
    listing = page.locator("[data-pane=listing]")
    line = listing.locator(".l[data-s]").first.get_attribute("data-s")
    source = page.locator(f"[data-pane=source] .l[data-s='{line}']").first
    source.locator(".t").click()
    expect(listing.locator(".pin").first).to_be_in_viewport()
    expect(source).to_have_class(re.compile(r"\bpin\b"))


def reads_a_regression(page: Page, running: Demo) -> None:
    """In the demo the history has something that became slower: the first page leads to it, it
    says how much and why, and who may acknowledges it."""
    page.goto("/")
    regression = page.get_by_role("link", name="A regression and its cause")
    expect(regression).to_be_visible(timeout=WORK_MS)
    regression.click()
    page.wait_for_url("**/alerts/*")
    key = int(page.url.rpartition("/")[2])
    found = running.rows(
        "SELECT after / before, low, high, n_before, n_after FROM codegen_app_change"
        " WHERE alert_id = %s AND withdrawn_at IS NULL",
        key,
    )
    said = page.locator("p", has=page.locator(".headline")).inner_text()
    ratio, _, rest = said.partition("95% interval")
    interval, _, counts = rest.partition("n =")
    assert any(
        shows(ratio, moved) and shows_all(interval, low, high) and shows_all(counts, before, after)
        for moved, low, high, before, after in found
    ), f"{said}: {found}"
    expect(page.get_by_role("heading", name="Cause")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Acknowledge")).click()
    expect(page.locator(".page-head")).to_contain_text("acknowledged")
    assert running.rows("SELECT state FROM codegen_app_alert WHERE id = %s", key) == [
        ("acknowledged",)
    ]


def takes_the_tour(page: Page) -> None:
    """Six pages, each with a note on it, by keyboard; it ends where it is left."""
    page.goto("/")
    page.get_by_role("link", name="Two-minute tour").press("Enter")
    notes = set()
    for number in range(1, 7):
        tour = page.get_by_role("complementary", name="Tour")
        expect(tour).to_contain_text(f"{number} of 6")
        notes.add(tour.inner_text())
        if number < 6:
            tour.get_by_role("link", name="Next").press("Enter")
    assert len(notes) == 6
    page.get_by_role("link", name="Done").press("Enter")
    expect(page.get_by_role("complementary", name="Tour")).to_have_count(0)
