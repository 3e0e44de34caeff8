"""How fast the heavy pages are in Chromium: a long listing, a comparison, a large graph.

    python -m pytest -s tests/benchmarks/pages.py

The goals that were set, on 2 cores: a listing of 20,000 lines opens within 1 s and scrolls
smoothly; two listings of 10,000 lines are compared within 1 s; a graph of 2,000 nodes does not
stutter. Times are from the navigation's start to the page that answers, by the page's own clock.
"""

from __future__ import annotations

import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from codegen_app.demo.programs import programs
from codegen_app.models import Build
from codegen_app.services import artifacts
from tests.app.processes import ROOT, worker_environment
from tests.e2e.conftest import *  # noqa: F403 - the browser and the small site are its fixtures
from tests.support.pages_world import World, make_graph

TRIES = 5
FRAMES = """async (step) => {
  const pane = document.querySelector("[data-pane=listing]");
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const times = [];
  let empty = 0;
  let before = await frame();
  for (let at = 0; at < 240; at += 1) {
    pane.scrollTop += step;
    const now = await frame();
    times.push(now - before);
    before = now;
    const box = pane.getBoundingClientRect();
    const under = document.elementFromPoint(box.left + 200, box.top + box.height / 2);
    if (!under.closest(".l")) empty += 1;
  }
  return { times, empty };
}"""


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


def test_a_long_listing(page: Page, world: World, say: Callable[[str], None]) -> None:
    build = lengthened(world.kernels[0].builds.get(target="gfx1100"), 20_000)
    address = f"{world.kernels[0].get_absolute_url()}?build={build.pk}"
    # Style sheets and scripts are there already, as for anybody who works here.
    opened(page, world.kernels[1].get_absolute_url())
    say(f"20,000 lines, first reading: {opened(page, address):.2f} s")
    times = [opened(page, address) for _ in range(TRIES)]
    say(f"20,000 lines, read before: {statistics.median(times):.2f} s (median of {TRIES})")
    for step, name in ((120, "wheel"), (1500, "dragging the bar")):
        opened(page, address)
        found = page.evaluate(FRAMES, step)
        slow = sorted(found["times"])
        say(
            f"  {name}, {step} px a frame: median {statistics.median(slow):.1f} ms a frame,"
            f" 95% within {slow[int(0.95 * len(slow))]:.1f} ms, longest {slow[-1]:.1f} ms;"
            f" {found['empty']} of {len(slow)} frames before their lines were there"
        )


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
    page.get_by_role("button", name="Open all").click()
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
