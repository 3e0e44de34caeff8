"""Every figure that stands on two pages (or on a page, in its twin, a log, a bundle) is the same
figure there, under the same label: one table of figures and places, on two targets, two devices and
two sizes, all held against the database."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import KernelUse
from codegen_app.kernels.queries.resource_use import ResourceUse, resource_use
from codegen_app.kernels.services import preparation
from codegen_app.tuning.models import BenchmarkResult, Selection, TuningRun, TuningTask
from codegen_app.tuning.queries import serving
from codegen_app.tuning.services import candidate_results
from codegen_app.web.templatetags.kiln import us
from codegen_app.workers import work
from codegen_app.workers.models import State
from tests.app import factories
from tests.support.exported import gemm, write
from tests.support.html_tables import Found, read
from tests.support.pages_world import make_build

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)

DEVICES = {"gfx942": "AMD Instinct MI300X", "gfx1100": "AMD Radeon PRO W7900"}
SIZES = (16, 64)
CASES = [(target, size) for target in DEVICES for size in SIZES]


@dataclass(frozen=True)
class Case:
    """A bucket of the world: a device with a target, and sizes."""

    graph: Graph
    node: TemplateNode
    run: TuningRun
    result: BenchmarkResult  # of the kernel that serves there
    bucket: str
    reader: Client

    @property
    def kernel(self) -> str:
        return self.result.kernel.name

    @property
    def use(self) -> ResourceUse:
        """Registers and occupancy, of the build that was measured."""
        found = resource_use(self.result.build.resources, self.run.target)
        assert found is not None
        return found

    def page(self, address: str, **given: str) -> Found:
        """A page's tables and facts."""
        return read(self.text(address, **given))

    def text(self, address: str, **given: str) -> str:
        answer = self.reader.get(f"{address}?{urlencode(given)}")
        assert answer.status_code == 200, address
        return answer.content.decode()

    def twin(self, address: str, **given: str) -> dict[str, Any]:
        return dict(json.loads(self.text(f"{address}.json", **given)))

    @property
    def device(self) -> str:
        return DEVICES[self.run.target]

    @property
    def sizes(self) -> str:
        return f"s0={self.run.bindings['s0']}"

    @property
    def kernel_address(self) -> str:
        return self.result.kernel.get_absolute_url()

    def bundle(self) -> zipfile.ZipFile:
        """As the graph's page offers it for these times."""
        answer = self.reader.get(
            f"{self.graph.get_absolute_url()}/bundle.zip?{urlencode({'times': self.bucket})}"
        )
        assert "attachment" in answer.headers["Content-Disposition"]
        return zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))


def make_run(node: TemplateNode, target: str, size: int, place: int) -> TuningRun:
    """Two kernels measured on a device of the target, each median another than any other."""
    run = TuningRun.objects.create(
        graph=node.graph, device=f"rocm:{place}", target=target, bindings={"s0": size},
        state=State.DONE, planned_at=timezone.now(), finished_at=timezone.now(),
    )  # fmt: skip
    task = TuningTask.objects.create(
        run=run, problem=node.problem, template_node=node, state=State.DONE, title="linear",
        finished_at=timezone.now(),
    )  # fmt: skip
    environment = factories.environment(
        device=run.device, device_name=DEVICES[target], target=target, compiler="bundled"
    )
    rows = []
    for position, use in enumerate(KernelUse.objects.filter(template_node=node)[:2]):
        build = use.kernel.builds.get(target=target)
        # Which of the two is the faster one changes from case to case.
        median = 1_000.0 * (111 + 10 * place + 70 * ((position + place) % 2))
        samples = [median * part for part in (0.98, 0.99, 1.0, 1.01, 1.02)] + [median] * 2 * place
        result = factories.result(
            build, median, problem=node.problem, bindings=run.bindings, task=task,
            environment=environment, samples_ns=samples,
            low_ns=0.985 * median, high_ns=1.015 * median,
        )  # fmt: skip
        rows.append(
            factories.candidate(
                task, build=build, result=result, position=position, state=State.DONE,
                finished_at=timezone.now(), config=use.kernel.config,
            )
        )  # fmt: skip
    chosen = min(rows, key=lambda row: row.result.median_ns)
    with transaction.atomic():
        candidate_results.choose(chosen, chosen.result, [])
    return run


@pytest.fixture
def cases(reader: Client, code_cache: Path, tmp_path: Path) -> dict[tuple[str, int], Case]:
    """A model of one kernel, really compiled for both targets, measured at both sizes."""
    graph, _ = graphs.import_graph(write(tmp_path / "linear.pt2", gemm()), "linear", [], None)
    held = work.claim_next(Graph.objects.filter(pk=graph.pk), "w")
    assert held is not None
    preparation.prepare(held)
    graph.refresh_from_db()
    node = TemplateNode.objects.get(graph=graph, problem__isnull=False)
    for use in KernelUse.objects.filter(template_node=node)[:2]:
        for target in DEVICES:
            make_build(use.kernel, target, code_cache)
    made = {}
    for place, (target, size) in enumerate(CASES):
        run = make_run(node, target, size, place)
        chosen = Selection.objects.get(target=target, bindings={"s0": size})
        result = BenchmarkResult.objects.select_related("kernel", "build", "environment").get(
            kernel=chosen.kernel, task__run=run
        )
        nodes = TemplateNode.objects.filter(graph=graph).select_related("problem")
        (bucket,) = (
            one.name
            for one in serving.node_buckets(nodes).buckets
            if one.target == target and one.bindings == {"s0": size}
        )
        made[target, size] = Case(graph, node, run, result, bucket, reader)
    return made


# The row of each page's table that has the figures of the kernel that serves.
ROWS: Mapping[str, Callable[[Case], Mapping[str, str]]] = {
    "graph": lambda c: c.page(c.graph.get_absolute_url(), times=c.bucket).row(
        "scheduled", c.node.name
    ),
    "node": lambda c: c.page(c.node.get_absolute_url(), times=c.bucket).row("candidates", c.kernel),
    "kernels": lambda c: c.page("/kernels", times=c.bucket).row("kernels", c.kernel),
    "kernel": lambda c: c.page(c.kernel_address, tab="results").row("results", c.device, c.sizes),
    "selections": lambda c: c.page("/selections").row("selections", c.device, c.sizes),
    "run": lambda c: c.page(c.run.get_absolute_url()).row("best", c.node.name),
    "ledger": lambda c: c.page(c.run.get_absolute_url()).row("ledger", c.kernel),
}
_DASH = "\N{EN DASH}"


def _range(case: Case) -> str:
    """Bounds of fewer than six samples are no interval."""
    return "range " if len(case.result.samples_ns) < 6 else ""


@dataclass(frozen=True)
class Figure:
    """A column's label, what the database says as pages write it, and where it stands."""

    label: str
    text: Callable[[Case], str]
    places: tuple[str, ...]


FIGURES = (
    Figure("Median µs", lambda c: us(c.result.median_ns), tuple(ROWS)),
    Figure(
        "Interval µs",
        lambda c: f"{_range(c)}{us(c.result.low_ns)} {_DASH} {us(c.result.high_ns)}",
        ("node", "kernel", "selections", "run", "ledger"),
    ),
    Figure(
        "n",
        lambda c: str(len(c.result.samples_ns)),
        ("node", "kernel", "selections", "run", "ledger"),
    ),
    Figure(
        "Kernel",
        lambda c: c.kernel,
        ("graph", "node", "kernels", "selections", "run", "ledger"),
    ),
    Figure("Registers", lambda c: str(c.use.registers), ("node", "kernels", "ledger")),
    Figure(
        "Occupancy %",
        lambda c: f"{c.use.occupancy_percent:.1f} {c.use.words}",
        ("node", "kernels", "ledger"),
    ),
    Figure("Share %", lambda c: "100.0", ("graph", "kernels")),
    Figure("Total µs", lambda c: us(c.result.median_ns), ("kernels",)),
    Figure("Device", lambda c: c.device, ("kernel", "selections")),
    Figure("Target", lambda c: c.run.target, ("kernel",)),
    Figure("Sizes", lambda c: c.sizes, ("kernel", "selections")),
    Figure("Measured on", lambda c: f"{c.device} {c.sizes}", ("node",)),
)

# What a page's facts say of the same.
FACTS: Mapping[str, tuple[Callable[[Case], Found], Mapping[str, Callable[[Case], str]]]] = {
    "graph": (
        lambda c: c.page(c.graph.get_absolute_url(), times=c.bucket),
        {
            "Measured on": lambda c: c.device,
            "Sizes": lambda c: c.sizes,
            "Samples": lambda c: str(len(c.result.samples_ns)),
            "Measured nodes": lambda _: "1 of 1",
        },
    ),
    "run": (
        lambda c: c.page(c.run.get_absolute_url()),
        {
            "Device": lambda c: c.run.device,
            "Target": lambda c: c.run.target,
            "Sizes": lambda c: c.sizes,
            "Measured": lambda c: str(c.run.tasks.get().candidates.count()),
        },
    ),
}


def one(rows: Iterable[Mapping[str, Any]], **has: object) -> Mapping[str, Any]:
    """The only row that has these values."""
    (found,) = (row for row in rows if all(row[name] == value for name, value in has.items()))
    return found


# The same in what programs read.
TWINS: Mapping[str, Callable[[Case], Mapping[str, Any]]] = {
    "graph": lambda c: one(
        c.twin(c.graph.get_absolute_url(), times=c.bucket)["scheduled"], name=c.node.name
    )["serving"],
    "node": lambda c: one(
        c.twin(c.node.get_absolute_url(), times=c.bucket)["candidates"], selected=True
    )["timing"],
    "kernels": lambda c: one(c.twin("/kernels", times=c.bucket)["kernels"], name=c.kernel),
    "kernel": lambda c: one(
        c.twin(c.kernel_address)["results"], device=c.device, bindings=c.run.bindings
    ),
    "selections": lambda c: one(
        c.twin("/selections")["buckets"], device_name=c.device, bindings=c.run.bindings
    )["serving"],
    "run": lambda c: one(c.twin(c.run.get_absolute_url())["best"], node=c.node.name),
    "run, ledger": lambda c: one(c.twin(c.run.get_absolute_url())["ledger"], chosen=True),
    "ledger.jsonl": lambda c: one(_lines(c)[1:], state="chosen")["measurement"],
}


def _lines(case: Case) -> list[dict[str, Any]]:
    text = case.text(f"{case.run.get_absolute_url()}/ledger.jsonl")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.full
def test_a_figure_is_the_same_on_every_page(cases: dict[tuple[str, int], Case]) -> None:
    wrong = []
    for where, case in cases.items():
        rows = {place: read_row(case) for place, read_row in ROWS.items()}
        for figure in FIGURES:
            for place in figure.places:
                shown = rows[place].get(figure.label, "no such label")
                if shown.removeprefix("selected ") != figure.text(case):
                    wrong.append((where, place, figure.label, shown, figure.text(case)))
    assert wrong == []


def test_the_facts_of_pages_are_those_of_their_tables(
    cases: dict[tuple[str, int], Case],
) -> None:
    wrong = []
    for where, case in cases.items():
        for place, (page, facts) in FACTS.items():
            found = page(case)
            for label, text in facts.items():
                if found.facts.get(label) != [text(case)]:
                    wrong.append((where, place, label, found.facts.get(label), text(case)))
    assert wrong == []


def test_pages_and_ledgers_say_what_became_of_every_node(
    cases: dict[tuple[str, int], Case],
) -> None:
    said = "2 of 2 nodes accounted for: 2 in kernels"
    for case in cases.values():
        address = case.graph.get_absolute_url()
        assert case.page(address).facts["Graph nodes"] == [said]
        assert case.twin(address)["accounted"] == _lines(case)[0]["accounted"] == said


@pytest.mark.full
def test_twins_and_ledgers_have_the_figures_of_the_database(
    cases: dict[tuple[str, int], Case],
) -> None:
    for where, case in cases.items():
        result = case.result
        expected = (result.median_ns, result.low_ns, result.high_ns, len(result.samples_ns))
        for place, read_row in TWINS.items():
            row = read_row(case)
            n = row["metrics"]["time"]["n"] if "metrics" in row else row["n"]
            assert (row["median_ns"], row["low_ns"], row["high_ns"], n) == expected, (where, place)
        use = {"target": case.run.target, "registers": case.use.registers, "waves": case.use.waves}
        for place in ("kernels", "run, ledger"):
            assert TWINS[place](case)["resource_use"].items() >= use.items(), (where, place)
        (of_ledger,) = (line for line in _lines(case)[1:] if line["state"] == "chosen")
        assert of_ledger["resources"] == result.build.resources
        assert of_ledger["bindings"] == case.run.bindings


def test_sums_are_of_the_medians_that_stand_below_them(
    cases: dict[tuple[str, int], Case],
) -> None:
    for case in cases.values():
        address = case.graph.get_absolute_url()
        page = case.text(address, times=case.bucket)
        headline = re.search(r'class="headline">([^<]*)', page)
        assert headline is not None
        assert headline[1].strip() == us(case.result.median_ns)
        assert "Sum of medians" in page
        assert case.twin(address, times=case.bucket)["total_ns"] == case.result.median_ns
    summary = case.twin("/overview")["summary"]
    ranking = summary["ranking"]
    shown = one(
        [{"bucket": c.bucket, "case": c} for c in cases.values()], bucket=ranking["bucket"]["name"]
    )["case"]
    first = shown.twin(shown.graph.get_absolute_url())
    assert first["ranking"] == ranking, "the graph opens with the overview's times"
    assert ranking["total_ns"] == first["total_ns"] == shown.result.median_ns
    (row,) = ranking["kernels"]
    assert (row["kernel"], row["share"]) == (shown.kernel, 1.0)
    assert summary["narrowest"]["waves"] == shown.use.words
    assert us(shown.result.median_ns) in shown.text("/")


def test_logs_have_the_medians_in_milliseconds(cases: dict[tuple[str, int], Case]) -> None:
    for case in cases.values():
        log = case.text(f"{case.run.get_absolute_url()}/autotune.log")
        kept = BenchmarkResult.objects.filter(task__run=case.run).select_related("kernel")
        written = dict(re.findall(r"^  (\S+) (\d+\.\d+) ms", log, re.MULTILINE))
        assert written == {row.kernel.name: f"{row.median_ns / 1e6:.4f}" for row in kept}


def test_a_bundle_has_the_choice_of_its_times(cases: dict[tuple[str, int], Case]) -> None:
    for case in cases.values():
        bundle = case.bundle()
        (folder,) = {name.split("/")[0] for name in bundle.namelist()}
        manifest = json.loads(bundle.read(f"{folder}/manifest.json"))
        assert manifest["chosen_by"] == {
            "device_name": case.device,
            "target": case.run.target,
            "toolchain": Selection.objects.get(result=case.result).toolchain,
            "bindings": case.run.bindings,
        }
        served = [call for call in manifest["calls"] if call["kernel"] == case.kernel]
        assert [call["choice"]["source"] for call in served] == ["selected"]
        assert manifest["kernels"][case.kernel]["config"] == dict(case.result.kernel.config)
        assert set(manifest["targets"]) == set(DEVICES)
        place = f"{folder}/kernels/{case.kernel}/{case.run.target}/build.json"
        built = json.loads(bundle.read(place))
        assert built["resources"] == case.result.build.resources
        assert built["code_digest"] == case.result.build.code_digest
