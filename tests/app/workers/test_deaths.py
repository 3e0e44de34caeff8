"""Workers killed (SIGKILL) wherever it could hurt: nothing is lost, nothing is done twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from django.utils import timezone

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    Change,
    Delivery,
    DeliveryState,
    EventKind,
    Source,
)
from codegen_app.tracking.services import alert_pipeline, point_storage
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun, TuningTask
from codegen_app.tuning.services import planning, run_requests
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import samples
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.tuning.budget import Budget
from tests.app.dying_worker import PLACES, SEARCHING, SENDING, TRACKING
from tests.app.processes import ROOT, SECRET_KEY, worker_environment
from tests.app.track_factories import channel
from tests.support.receivers import http_receiver

Die = Callable[[str], list[int]]


@pytest.fixture
def workers(transactional_db: None, tmp_path: Path) -> Iterator[Die]:
    with (
        (tmp_path / "log").open("w+") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.app.dying_worker"],
            cwd=ROOT,
            env=worker_environment(tmp_path, "memory://"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def work_at(places: str) -> list[int]:
            stdin.write(f"{places}\n")
            stdin.flush()
            codes = stdout.readline().split()
            log.seek(0)
            assert codes, log.read()
            assert "1" not in codes, log.read()
            return [int(code) for code in codes]

        yield work_at
        stdin.close()


def start(graph: Graph, kind: str, **options: object) -> TuningRun:
    least = {name: info["min"] for name, info in graph.symbols.items()}
    run = run_requests.start_run(graph, "cpu", "cpu", least, None, kinds=[kind], **options)
    planning.plan_waiting()
    return run


@pytest.mark.long
def test_a_worker_may_die_anywhere(workers: Die) -> None:
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", [], None)
    run = start(graph, "reduction", candidate_limit=2)
    for place in PLACES:
        assert workers(place) == [-signal.SIGKILL], place
        work.requeue_orphans()
    assert workers("-; -") == [0, 0], "two at once, and both live"

    graph.refresh_from_db()
    run.refresh_from_db()
    assert (graph.state, run.state) == (State.DONE, State.DONE)
    names = TemplateNode.objects.values_list("name", flat=True)
    assert len(set(names)) == len(names) > 5
    assert set(Build.objects.values_list("state", flat=True)) == {State.DONE}
    assert set(TuningTask.objects.values_list("state", flat=True)) == {State.DONE}
    measured = Candidate.objects.filter(kernel__isnull=False)
    assert set(measured.values_list("state", flat=True)) == {State.DONE}
    assert BenchmarkResult.objects.count() == measured.count() >= 2
    tasks = TuningTask.objects.count()
    assert measured.filter(chosen=True).count() == Selection.objects.count() == tasks
    # Nobody says of these processes that the worker lives on which they belong to.
    assert not any(sum(m.objects.values_list("deaths", flat=True)) for m in work.work_models())


@pytest.mark.long
def test_a_search_goes_on_where_a_worker_died(workers: Die) -> None:
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", [], None)
    assert workers("-") == [0]
    node = TemplateNode.objects.filter(kind="reduction").order_by("position")[0]
    run = start(graph, "reduction", template_node=node, budget=Budget(3600.0, measurements=2))
    for place in SEARCHING:
        assert workers(place) == [-signal.SIGKILL], place
        work.requeue_orphans()
    assert workers("-; -") == [0, 0]
    run.refresh_from_db()
    assert run.state == State.DONE
    assert not Candidate.objects.filter(state__in=[State.QUEUED, State.RUNNING]).exists()
    measured = Candidate.objects.filter(state=State.DONE)
    assert 1 <= measured.count() <= 2
    assert measured.filter(chosen=True).count() == 1
    for candidate in measured:
        assert BenchmarkResult.objects.filter(kernel=candidate.kernel).count() == 1


@pytest.mark.long
def test_from_points_to_a_receiver_a_worker_may_die_anywhere(workers: Die, settings: Any) -> None:
    """Nobody gives anything on here: what the dead one held is free, and what waits is in the
    rows. A message is sent again where nobody could note it, with the key that it had."""
    settings.SECRET_KEY = SECRET_KEY
    with http_receiver() as receiver:
        channel(address=receiver.url)
        point_storage.store([one for name in "abc" for one in regressing(name)], Source.API)
        for place in TRACKING | SENDING:
            assert workers(place) == [-signal.SIGKILL], place
            Delivery.objects.update(next_at=timezone.now())  # the lease of a claim is over
        assert workers("-; -") == [0, 0], "two at once, and both live"
        first, again = receiver.next(0), receiver.next(0)
        with pytest.raises(Empty):
            receiver.next(0)

    assert not alert_pipeline.has_pending()
    changes = Change.objects.values_list("series__problem", "withdrawn_at", "cause")
    assert sorted(changes) == [(name, None, "code") for name in "abc"]
    alert = Alert.objects.get()
    assert alert.n_series == 3
    assert set(alert.changes.values_list("series__problem", flat=True)) == {*"abc"}
    event = AlertEvent.objects.get()
    assert event.kind == EventKind.RAISED
    delivery = Delivery.objects.get()
    assert (delivery.event, delivery.state) == (event, DeliveryState.DELIVERED)
    sent = {one.headers["kiln-delivery"] for one in (first, again)}
    assert sent == {str(delivery.key)}, "twice at the receiver, which can tell"


def regressing(problem: str) -> list[Point]:
    """A fifth slower from the commit of the 20th day on."""
    of = SeriesKey(problem, {}, "sm_90", "NVIDIA H200", "nvcc", "time", "ns")
    points = []
    for n in range(30):
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n)
        code = ("a" if n < 20 else "b") * 64
        known = {"driver": "580.95", "toolchain_version": "13.0"}
        conditions = known | {"code_digest": code, "source_digest": code}
        value = (100.0 if n < 20 else 120.0) + n % 3 / 10
        points.append(Point(of, value, at, RevisionKey(f"r{n}", at), conditions=conditions))
    return points
