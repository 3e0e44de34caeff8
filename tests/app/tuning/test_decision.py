"""One decision a problem: the rows, the pages, the log and the selection say what the tuner chose,
with the measurement that it chose by. Real compilers; a device whose times the test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import ProblemWork
from codegen_app.kernels.services import remote_builds
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun
from codegen_app.tuning.services import ledger, measurement_tasks, planning, run_requests
from codegen_app.workers import work
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.metrics import METRICS, Metric, MetricInputs, MetricRow
from scheduler.benchmark.timing import Sampler
from scheduler.codegen.caller import TemplateCaller
from scheduler.runtime.device import Timing
from scheduler.tuning import assignment
from scheduler.tuning import run as engine
from scheduler.tuning.budget import Budget
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.tuner import ProblemResult, TuningResult
from tests.app import factories

pytestmark = pytest.mark.django_db(transaction=True)

US = 1000.0


@dataclass
class Times:
    """Microseconds of each candidate by its place, in the first look and in the last rounds: a few
    samples each, again and again."""

    first: tuple[tuple[float, ...], ...]
    last: tuple[tuple[float, ...], ...]


class Device:
    """An evaluator with these times, in place of the worker process."""

    def __init__(self, times: Times) -> None:
        self._times = times

    def __call__(self, *_: object, **__: object) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def use(self, problem: TuningProblem) -> None: ...

    def check(self, candidate: BuiltCandidate, max_s: float) -> Check:
        return Check(True, 0.0, 1.0, 0.0, True)

    def check_edges(self, problem: TuningProblem, caller: TemplateCaller, library: str) -> None: ...

    def sampler(self, candidates: Mapping[str, BuiltCandidate], max_s: float) -> Sampler:
        table = self._times.last if len(candidates) > 1 else self._times.first
        samples: dict[str, Iterator[float]] = {
            key: cycle(table[int(key.partition(":")[0])]) for key in candidates
        }
        return lambda key, batch: Timing(next(samples[key]) * US * batch)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    """Prepared; there are no workers: builds are done beside the tuner."""
    monkeypatch.setattr(remote_builds, "_UNCLAIMED_AFTER_S", 0.0)
    return factories.prepared_graph()


@pytest.fixture
def decided(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Times], tuple[TuningRun, ProblemResult]]:
    """A run of one problem on a device with such times, and what the engine decided."""

    def run_with(times: Times) -> tuple[TuningRun, ProblemResult]:
        results: list[TuningResult] = []

        def tune(*args: Any, **kwargs: Any) -> TuningResult:
            results.append(engine.tune(*args, **kwargs))
            return results[-1]

        monkeypatch.setattr(engine, "BenchEvaluator", Device(times))
        monkeypatch.setattr(assignment, "tune", tune)
        node = graph.template_nodes.filter(kind="reduction").order_by("position").first()
        budget = Budget(measurements=len(times.first))
        run = run_requests.start_run(
            *(graph, "cpu", "cpu", {}, None),
            template_node=node,
            budget=budget,
            strategy="exhaustive",
        )
        planning.plan_waiting()
        task = work.claim_next(ledger.ready_tasks("cpu").filter(run=run), "w")
        assert task is not None
        measurement_tasks.run_task(task)
        (result,) = results
        return run, result.problems[0]

    return run_with


TIE = Times(
    first=((100.0, 101.0), (99.0, 100.0), (300.0,)),
    last=((100.0, 104.0, 102.0), (99.0, 103.0, 101.0), (300.0,)),
)
CHANGED = Times(
    first=((100.0,), (50.0,), (60.0,)),
    last=((100.0, 100.1), (70.0, 70.1), (60.0, 60.1)),
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("times", "place", "ties"), [(TIE, 0, 2), (CHANGED, 2, 0)], ids=["a tie", "another order"]
)
def test_everything_says_what_the_engine_decided(
    times: Times,
    place: int,
    ties: int,
    decided: Callable[[Times], tuple[TuningRun, ProblemResult]],
    client: Client,
) -> None:
    run, result = decided(times)
    chosen = result.chosen
    assert chosen is not None
    assert chosen.measurement is not None
    assert result.entries.index(chosen) == place
    assert len(result.tied) == ties
    said = (chosen.kernel, chosen.measurement.median_ns)
    tied = {entry.kernel for entry in result.tied}

    row = Candidate.objects.get(task__run=run, chosen=True)
    assert row.kernel is not None
    assert row.result is not None
    assert (row.kernel.name, row.result.median_ns) == said
    assert row.result.samples_ns == list(chosen.measurement.samples_ns)
    assert BenchmarkResult.objects.count() == 3, "the last rounds' times, none beside them"
    of_run = Candidate.objects.filter(task__run=run)
    assert set(of_run.filter(tied=True).values_list("kernel__name", flat=True)) == tied

    serving = Selection.objects.get(until__isnull=True)
    assert serving.result is not None
    assert (serving.kernel.name, serving.result.median_ns) == said

    client.force_login(User.objects.create_user("reader"))
    page = client.get(f"/runs/{run.pk}.json").json()
    assert [(best["kernel"], best["median_ns"]) for best in page["best"]] == [said]
    lines = page["ledger"]
    assert [(line["kernel"], line["median_ns"]) for line in lines if line["chosen"]] == [said]
    assert {line["kernel"] for line in lines if line["tied"]} == tied

    text = client.get(f"/runs/{run.pk}/ledger.jsonl").content.decode()
    records = [json.loads(line) for line in text.splitlines()][1:]
    states = [
        (one["kernel"], one["measurement"]["median_ns"])
        for one in records
        if one["state"] == "chosen"
    ]
    assert states == [said]
    assert {one["kernel"] for one in records if one["tied"]} == tied

    log = client.get(f"/runs/{run.pk}/autotune.log").content.decode()
    first = log.splitlines()[3].split()
    assert (first[0], first[1], first[3]) == (said[0], f"{said[1] / 1e6:.4f}", "100.0%")


@pytest.mark.full
def test_a_metric_of_one_row_is_kept_and_shown_everywhere(
    decided: Callable[[Times], tuple[TuningRun, ProblemResult]],
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def energy(facts: MetricInputs, unit: str) -> Metric:
        return Metric(7.25, 7.0, 7.5, unit, len(facts.samples_ns))

    monkeypatch.setitem(METRICS, "energy", MetricRow("Energy", "mJ", "measured", energy))
    run, _ = decided(CHANGED)
    client.force_login(User.objects.create_user("reader"))
    page = client.get(f"/runs/{run.pk}").content.decode()
    assert 'Energy <span class="unit">mJ</span>' in page
    assert '<td class="num">7.25</td>' in page
    lines = client.get(f"/runs/{run.pk}.json").json()["ledger"]
    chosen = next(line for line in lines if line["chosen"])
    row = Candidate.objects.get(task__run=run, chosen=True)
    assert row.result is not None
    assert chosen["metrics"]["energy"]["value"] == 7.25
    assert chosen["metrics"]["time"]["value"] == row.result.median_ns
    work = ProblemWork.objects.get(problem=row.result.problem)
    moved = work.read_bytes + work.written_bytes
    assert chosen["metrics"]["bandwidth"]["value"] == pytest.approx(moved / row.result.median_ns)
    text = client.get(f"/runs/{run.pk}/ledger.jsonl").content.decode()
    records = [json.loads(line) for line in text.splitlines()][1:]
    kept = [one["measurement"]["metrics"]["energy"] for one in records if one["measurement"]]
    assert [one["unit"] for one in kept] == ["mJ"] * 3
