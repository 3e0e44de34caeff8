"""What pages, twins and logs say of one choice: kernel, median and number of samples, to be held
against each other and against the database."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import APIRequestContext, Locator, Page, expect

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.tuning.models import BenchmarkResult, TuningRun
from codegen_app.web.templatetags.kiln import us


@dataclass(frozen=True)
class Choice:
    """A kernel, its median in nanoseconds, and of how many samples that is."""

    kernel: str
    median_ns: float
    n: int


def choice_of(result: BenchmarkResult) -> Choice:
    """As the database has it."""
    return Choice(result.kernel.name, result.median_ns, len(result.samples_ns))


def twin(request: APIRequestContext, address: str) -> dict[str, Any]:
    """A page's twin."""
    answer = request.get(f"{address}.json")
    assert answer.ok, f"{address}.json: {answer.status}"
    return dict(answer.json())


def twins_say(request: APIRequestContext, graph: Graph, node: TemplateNode) -> dict[str, Choice]:
    """What serves a graph's only node, as each twin that has it says."""
    graph_twin = twin(request, graph.get_absolute_url())
    (scheduled,) = (row for row in graph_twin["scheduled"] if row["name"] == node.name)
    of_node = twin(request, node.get_absolute_url())["candidates"]
    (candidate,) = (row for row in of_node if row["selected"])
    (bucket,) = twin(request, "/selections")["buckets"]
    hottest = twin(request, "/overview")["summary"]["ranking"]["kernels"][0]
    return {
        "graph": _choice(scheduled["serving"]),
        "node": _choice({"kernel": candidate["kernel"], **candidate["timing"]}),
        "selections": _choice(bucket["serving"]),
        "overview": _choice(hottest),
    }


def _choice(row: Mapping[str, Any]) -> Choice:
    return Choice(row["kernel"], row["median_ns"], row["metrics"]["time"]["n"])


def pages_say(page: Page, graph: Graph, node: TemplateNode, choice: Choice) -> None:
    """Each page that has the choice of a graph's only node shows it, with the same figures."""
    page.goto(graph.get_absolute_url())
    expect(page.locator(".verdict .headline")).to_have_text(f"{us(choice.median_ns)} µs")
    row = page.locator(f"#scheduled-{node.pk}")
    expect(row.get_by_title(choice.kernel, exact=True)).to_be_visible()
    expect(row).to_contain_text(us(choice.median_ns))

    page.goto(node.get_absolute_url())
    row = page.locator("#candidates tbody tr").filter(has_text=choice.kernel)
    shows(row, choice)
    expect(row.locator(".status.best")).to_have_count(1)
    expect(page.locator("#candidates .status.best")).to_have_count(1)

    page.goto("/selections")
    row = page.locator("#selections tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator("td.name a.mono, td.code > a")).to_have_text(choice.kernel)
    shows(row, choice)

    page.goto("/")
    expect(page.locator(".headline-figure strong")).to_have_text(us(choice.median_ns))
    expect(page.locator(".headline-figure")).to_contain_text(f"n = {choice.n}")
    expect(page.locator("#ranking tbody tr").first).to_contain_text(us(choice.median_ns))


def shows(row: Locator, choice: Choice) -> None:
    """A row of a table has the choice's median and n, each in a cell of its own."""
    # Before it may stand how far it drifted since another run.
    cells = re.compile(rf"(^|\s){re.escape(us(choice.median_ns))}\s*\D*$")
    expect(row.locator("td.num").filter(has_text=cells)).not_to_have_count(0)
    expect(row.locator("td.num").filter(has_text=re.compile(rf"^{choice.n}$"))).not_to_have_count(0)


def fact(page: Page, label: str) -> Locator:
    """What a page's first list of facts says beside a label."""
    beside = page.locator("dt").get_by_text(label, exact=True)
    return page.locator("dl.facts").first.locator("div").filter(has=beside).locator("dd")


def ledger_of(request: APIRequestContext, run: TuningRun) -> Iterator[dict[str, Any]]:
    """The lines of a run's ledger, its own facts first."""
    text = request.get(f"{run.get_absolute_url()}/ledger.jsonl").text()
    return (json.loads(line) for line in text.splitlines())


def log_of(request: APIRequestContext, run: TuningRun) -> dict[str, float]:
    """Milliseconds of each kernel in a run's AUTOTUNE log."""
    text = request.get(f"{run.get_absolute_url()}/autotune.log").text()
    found = re.findall(r"^\s*(\w+_[0-9a-f]{8}) (\d+\.\d+) ms", text, re.MULTILINE)
    return {kernel: float(ms) for kernel, ms in found}
