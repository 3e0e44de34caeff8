"""How fast the heavy pages are in Chromium: a long listing, a comparison, a large graph.

    python -m pytest -s tests/benchmarks/pages.py

The goals that were set, on 2 cores: each page is painted within 500 ms of asking for it, is at
most 300 KB compressed without the script that draws plots, and does not shift; a listing of 20,000
lines opens within 1 s and scrolls at 60 frames a second, by wheel and by dragging; two listings of
10,000 lines are compared within 1 s; a graph of 2,000 nodes does not stutter; a run of 2,000 trials
takes the server 500 ms; at 20 requests a second, all pages in turn, 95% are answered within 300 ms
(``open_loop.py``, which also measures a running site). Times are from the navigation's start to the
page that answers, by the page's own clock.
"""

from __future__ import annotations

import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request as Asked
from urllib.request import urlopen

import pytest
from django.db import connection
from playwright.sync_api import Browser, Page, expect

from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts
from codegen_app.site.demo.programs import programs
from tests.app.processes import ROOT, worker_environment
from tests.benchmarks import open_loop
from tests.e2e.conftest import *  # noqa: F403 - the browser and the small site are its fixtures
from tests.e2e.conftest import ARGUMENTS
from tests.e2e.test_shifts import SHIFTS
from tests.support import every_page
from tests.support.pages_world import World, make_graph
from tests.support.trials_world import make_trials

TRIES = 5
# What was set: ms, KB (1,000 bytes, compressed, without the script that draws plots), ms a frame.
PAINT_MS, SIZE_KB, FRAME_MS = 500, 300, 1000 / 60
SERVER_MS = 500
PLOTS = "plotly-cartesian"
PAINTED = """() => new Promise((resolve) => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null;
  const files = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
  let shift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (!entry.hadRecentInput) shift += entry.value;
    }
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => resolve({
    paint, shift, files: files.map((file) => [file.name, file.transferSize]),
  }), 250);
})"""
# Intervals between frames, as long as they are asked for, and how many of them had no line in the
# middle of the listing once they were drawn: a message comes after the drawing.
RECORD = """() => {
  const pane = document.querySelector("[data-pane=listing]");
  const found = { times: [], empty: 0, running: true };
  const box = pane.getBoundingClientRect();
  let before = performance.now();
  const drawn = new MessageChannel();
  drawn.port1.onmessage = () => {
    const under = document.elementFromPoint(box.left + 200, box.top + box.height / 2);
    if (!under?.closest(".l")) found.empty += 1;
  };
  const frame = (now) => {
    if (!found.running) return;
    found.times.push(now - before);
    before = now;
    drawn.port2.postMessage("");
    requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => { before = now; requestAnimationFrame(frame); });
  globalThis.recorded = found;
}"""
STOP = "() => { recorded.running = false; return recorded; }"
DRAGGED_S = 10  # from the first of 20,000 lines to the last
ARROW_PX = 18  # of a scroll bar, above and below its thumb
TOP = """() => {
  const pane = document.querySelector("[data-pane=listing]");
  pane.scrollTop = 0;
  pane.scrollIntoView();
}"""
PLACE = "() => document.querySelector('[data-pane=listing]').scrollTop"


@dataclass(frozen=True)
class Server:
    """The server that ``make demo`` starts, in a process of its own."""

    url: str


@pytest.fixture
def server(transactional_db: None, tmp_path: Path) -> Iterator[Server]:
    environment = {**worker_environment(tmp_path, "memory://"), "KILN_READ_NEEDS_LOGIN": "0"}
    collect = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity=0"]
    subprocess.run(collect, cwd=ROOT, env=environment, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = programs(tmp_path, "127.0.0.1", port, "cpu")[0]
    with subprocess.Popen(
        program.command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            while not answers(f"{url}/login/"):
                assert server.poll() is None, "the server does not stay up"
            yield Server(url)
        finally:
            server.terminate()


def answers(url: str) -> bool:
    """Whether somebody serves there; an error of the pages is raised."""
    try:
        with urlopen(url):
            return True
    except HTTPError:
        raise
    except (URLError, ConnectionError):
        time.sleep(0.05)
        return False


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    context = browser.new_context(base_url=server.url, viewport={"width": 1400, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def write(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="")  # noqa: T201

    return write


def test_every_page(
    browser: Browser, server: Server, world: World, say: Callable[[str], None]
) -> None:
    """Each as somebody sees it who has never been here: nothing is in the browser's cache."""
    every_page.furnish(world.graph)
    lengthened(every_page.builds()[0], 20_000)
    missed = []
    for name, address in every_page.addresses().items():
        if name == "not-found":
            continue
        with urlopen(f"{server.url}{address}") as answer:  # rendered once for all who read it
            if "/login/" in answer.url:
                continue  # for who is signed in, who has been here
        found = min((first_visit(browser, server, address) for _ in range(3)), key=painted)
        size = sum(size for name, size in found["files"] if PLOTS not in name) / 1000
        over = [
            what
            for what, is_over in (
                ("late", found["paint"] > PAINT_MS),
                ("large", size > SIZE_KB),
                ("shifts", found["shift"] > 0),
            )
            if is_over
        ]
        missed += [f"{address}: {', '.join(over)}"] if over else []
        say(
            f"{address:<44} painted after {found['paint']:4.0f} ms (limit {PAINT_MS}),"
            f" {size:4.0f} KB (limit {SIZE_KB}), shifted by {found['shift']:.3f} (limit 0)"
            f" {'MISSED: ' + ', '.join(over) if over else ''}"
            + "".join(f"\n      {moved}" for moved in found["moved"])
        )
    assert not missed


def first_visit(browser: Browser, server: Server, address: str) -> dict[str, Any]:
    """When a page was painted, how it shifted, and the bytes of its files."""
    context = browser.new_context(base_url=server.url, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.add_init_script(path=SHIFTS)
    opened(page, address)
    found: dict[str, Any] = page.evaluate(PAINTED)
    found["moved"] = page.evaluate("shifts()")
    context.close()
    return found


def painted(found: dict[str, Any]) -> float:
    """Milliseconds; of several visits the fastest says most of the page, since whatever else the
    machine does only adds."""
    return float(found["paint"])


def test_twenty_requests_a_second(server: Server, world: World, say: Callable[[str], None]) -> None:
    """Each page was rendered by one of the server's processes; the others still have to."""
    every_page.furnish(world.graph)
    addresses = []
    for name, address in every_page.addresses().items():
        with suppress(HTTPError), urlopen(f"{server.url}{address}") as answer:
            addresses += [address] if name != "not-found" and "/login/" not in answer.url else []
    load = open_loop.measure(server.url, addresses, rate=20, seconds=60)
    for line in load.report(open_loop.P95_MS):
        say(line)
    assert not load.failures
    assert load.p95_ms <= open_loop.P95_MS


def test_a_long_listing(page: Page, world: World, say: Callable[[str], None]) -> None:
    build = lengthened(world.kernels[0].builds.get(target="gfx1100"), 20_000)
    address = f"{world.kernels[0].get_absolute_url()}?build={build.pk}"
    # Style sheets and scripts are there already, as for anybody who works here.
    opened(page, world.kernels[1].get_absolute_url())
    say(f"20,000 lines, first reading: {opened(page, address):.2f} s")
    times = [opened(page, address) for _ in range(TRIES)]
    say(f"20,000 lines, read before: {statistics.median(times):.2f} s (median of {TRIES})")


@pytest.mark.parametrize("how", ["wheel", "dragging the bar", "keys"])
def test_scrolling_a_long_listing(
    browser: Browser, server: Server, world: World, say: Callable[[str], None], how: str
) -> None:
    """Sixty frames a second while somebody scrolls, by real events of mouse and keyboard."""
    build = lengthened(world.kernels[0].builds.get(target="gfx1100"), 20_000)
    chromium = browser.browser_type.launch(
        executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
        args=list(ARGUMENTS),
        ignore_default_args=["--hide-scrollbars"],
    )
    context = chromium.new_context(base_url=server.url, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    opened(page, f"{world.kernels[0].get_absolute_url()}?build={build.pk}")
    page.evaluate(TOP)
    box = page.locator("[data-pane=listing]").bounding_box()
    assert box is not None
    page.evaluate(RECORD)
    {"wheel": by_wheel, "dragging the bar": by_bar, "keys": by_keys}[how](page, box)
    found, place = page.evaluate(STOP), page.evaluate(PLACE)
    chromium.close()
    times = sorted(found["times"])
    median, most = statistics.median(times), times[int(0.95 * len(times))]
    is_slow = median > FRAME_MS + 0.5
    say(
        f"20,000 lines, {how}: {place:,.0f} px in {len(times)} frames, median {median:.1f} ms"
        f" (limit {FRAME_MS:.1f}), 95% within {most:.1f} ms, longest {times[-1]:.1f} ms;"
        f" {found['empty']} frames before their lines were there (limit 0)"
        f"{' MISSED' if is_slow else ''}"
    )
    assert place > 1000, "nothing was scrolled"
    assert not is_slow, f"{how}: fewer than 60 frames a second"


def by_wheel(page: Page, box: Mapping[str, float]) -> None:
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    for _ in range(150):
        page.mouse.wheel(0, 120)


def by_bar(page: Page, box: Mapping[str, float]) -> None:
    """From the top to the bottom by the thumb of the scroll bar, which is at the right edge, below
    the bar's arrow: in ten seconds, or as fast as moves are taken."""
    x, top = box["x"] + box["width"] - 6, box["y"] + ARROW_PX + 4
    page.mouse.move(x, top)
    page.mouse.down()
    steps, begun = DRAGGED_S * 60, time.monotonic()
    for at in range(steps):
        page.mouse.move(x, top + at * (box["height"] - 2 * ARROW_PX - 24) / steps)
        time.sleep(max(0.0, begun + at / 60 - time.monotonic()))
    page.mouse.up()


def by_keys(page: Page, _box: Mapping[str, float]) -> None:
    page.locator("[data-pane=listing]").focus()
    for _ in range(200):
        page.keyboard.press("j")


def test_a_comparison(page: Page, world: World, say: Callable[[str], None]) -> None:
    one, other = (kernel.builds.get(target="gfx1100") for kernel in world.kernels[:2])
    lengthened(one, 10_000)
    lengthened(other, 10_000, changed=97)
    page.goto("/")
    times = [opened(page, f"/compare?build={one.pk}&build={other.pk}") for _ in range(TRIES)]
    say(f"2 x 10,000 lines compared: {statistics.median(times):.2f} s (median of {TRIES})")
    kinds = {name: page.locator(f".diff .{name}").count() for name in ("changed", "removed", "gap")}
    say(f"  rows: {kinds}")


def test_a_large_graph(page: Page, say: Callable[[str], None]) -> None:
    large = make_graph("large", layers=500)
    page.goto("/graphs")
    say(f"2,000 nodes, modules closed: {opened(page, large.get_absolute_url()):.2f} s")
    start = page.evaluate("performance.now()")
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator(".graph-view .node")).to_have_count(2000, timeout=20_000)
    say(f"  all open: {(page.evaluate('performance.now()') - start) / 1000:.2f} s")
    gaps = page.evaluate(
        """async () => {
          const layer = document.querySelector(".graph-view svg > g");
          const svg = document.querySelector(".graph-view svg");
          const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
          const times = [];
          let before = await frame();
          for (let at = 0; at < 120; at += 1) {
            svg.dispatchEvent(new WheelEvent("wheel", { deltaY: at < 60 ? 20 : -20, bubbles: true,
              cancelable: true, clientX: 300, clientY: 500 }));
            const now = await frame();
            times.push(now - before);
            before = now;
          }
          return times.sort((one, other) => one - other);
        }"""
    )
    say(
        f"  zooming: median {statistics.median(gaps):.1f} ms a frame,"
        f" 95% within {gaps[int(0.95 * len(gaps))]:.1f} ms"
    )


def test_a_run_of_many_trials(
    page: Page, server: Server, world: World, say: Callable[[str], None]
) -> None:
    """2,000 trials beside 200 in the same run: the server's time for a page that is not kept, its
    bytes, and until everything on it answers. Ratios, since times depend on the machine; a page
    with ten times the trials has the same table, and plots with ten times the points."""
    page.goto("/runs")  # style sheets and scripts are there already
    found: dict[int, tuple[float, float, float]] = {}
    for rounds in (4, 42):
        made = make_trials(rounds=rounds)
        connection.cursor().execute("ANALYZE")
        address = made.run.get_absolute_url()
        # Each address is rendered anew: what is kept goes by it.
        server_s = min(answered(f"{server.url}{address}?of=op0{'&x=tried' * n}")[0] for n in (0, 1))
        size = answered(f"{server.url}{address}")[1] / 1000
        ready_s = min(opened(page, address) for _ in range(TRIES))
        count = made.run.tasks.get().candidates.count()
        found[rounds] = server_s, size, ready_s
        say(
            f"a run of {count:,} candidates: {1000 * server_s:.0f} ms in the server (limit"
            f" {SERVER_MS}), {size:.0f} KB compressed with its plots' data (limit {SIZE_KB}),"
            f" ready after {ready_s:.2f} s"
        )
    few, many = found[4], found[42]
    times = [f"{one / other:.1f}" for other, one in zip(few, many, strict=True)]
    say(f"  ten times the trials: {times[0]} x the server's time, {times[1]} x the bytes,")
    say(f"  {times[2]} x the time until it answers")
    assert many[1] <= SIZE_KB
    assert 1000 * many[0] <= SERVER_MS


def answered(url: str) -> tuple[float, int]:
    """Seconds until a page was there whole, and its bytes as they came, compressed."""
    start = time.perf_counter()
    with urlopen(Asked(url, headers={"Accept-Encoding": "gzip"})) as answer:
        size = len(answer.read())
    return time.perf_counter() - start, size


def opened(page: Page, address: str) -> float:
    """Seconds from the navigation's start until everything on the page answers."""
    page.goto(address, wait_until="commit")
    page.wait_for_selector("html[data-ready]")
    seconds: float = page.evaluate("performance.now()") / 1000
    return seconds


def lengthened(build: Build, lines: int, changed: int = 0) -> Build:
    """The build with a listing of that many lines: its function's body again and again, labels
    renamed; with ``changed``, one in so many instructions is another."""
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    head, body, rest = re.split(r"(?<=; %bb.0:)\n|(?=\ts_endpgm)", text, maxsplit=2)
    body_lines = body.count("\n")
    copies = lines // body_lines + 1
    parts = [re.sub(r"(\.L\w+)", rf"\1_{copy}", body) for copy in range(copies)]
    longer = "".join(parts)
    if changed:
        rows = longer.split("\n")
        rows[::changed] = ["\tv_rcp_f32_e32 v1, v2"] * len(rows[::changed])
        longer = "\n".join(rows)
    build.listing = artifacts.store(f"{head}\n{longer}{rest}".encode(), ".s")
    build.save()
    return build
