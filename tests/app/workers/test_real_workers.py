"""Real worker processes, on each broker, killed in the middle of their work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db.models import QuerySet

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build
from codegen_app.site.demo.processes import descendants
from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import run_requests
from codegen_app.workers.models import State, Worker
from scheduler import samples
from tests.app.processes import ROOT, worker_environment
from tests.support import leases, redis_server

LIMIT_S = 600
COMPILING, MEASURING, MODELLING = "prepare,compile", "measure.cpu", "measure.model"


class Workers:
    """Starts Celery workers as the demo does, on the test's database and in its folder."""

    def __init__(self, var: Path, broker_url: str, **environment: str) -> None:
        self._var = var
        self._running: list[subprocess.Popen[bytes]] = []
        self._environment = worker_environment(var, broker_url) | environment

    def start(self) -> None:
        """One that compiles, one that measures."""
        self.start_one(COMPILING)
        self.start_one(MEASURING)

    def start_one(self, queues: str, *options: str) -> None:
        """One that serves these queues; ``options`` are those of Celery's worker."""
        command = (
            *(
                sys.executable,
                "-m",
                "celery",
                "--app",
                "codegen_app.platform.config.celery",
                "--quiet",
            ),
            *("worker", *options, "--queues", queues, "--hostname", f"test{len(self._running)}@%h"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        )
        self.run(command)

    def run(self, command: Sequence[str]) -> None:
        """A worker by this command."""
        with (self._var / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self._running.append(process)

    def kill(self) -> None:
        """kill -9 for the workers and whatever they started; what they held stays theirs until
        their leases run out (support/leases.py)."""
        for process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @property
    def count(self) -> int:
        """How many were started."""
        return len(self._running)

    def children(self) -> list[int]:
        """Processes of the workers' making."""
        return [pid for one in self._running for pid in descendants(one.pid)]

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline or all(one.poll() is not None for one in self._running):
                log = (self._var / "worker.log").read_text()[-4000:]
                pytest.fail(f"no {what}; the workers said:\n{log}")
            time.sleep(0.05)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """A Redis of this test's own."""
    if lacking := redis_server.lacking():
        pytest.skip(lacking)
    server = redis_server.RedisServer(tmp_path)
    try:
        server.start()
        yield server.url
    finally:
        server.end()


@pytest.fixture(params=["database", pytest.param("redis", marks=pytest.mark.long)])
def workers(
    request: pytest.FixtureRequest, transactional_db: None, tmp_path: Path
) -> Iterator[Workers]:
    url = "database://localhost"
    if request.param == "redis":
        url = request.getfixturevalue("redis")
    made = Workers(tmp_path, url)
    yield made
    made.kill()


@pytest.mark.full
def killed_over(workers: Workers, rows: QuerySet[Any], what: str) -> None:
    """kill -9 while such a row is worked on, and others begin; where the last one was done just
    before, another is waited for."""
    held = False
    while not held:
        workers.wait(rows.exists, what)
        workers.kill()
        held = rows.exists()
        leases.expire_all()
        workers.start()


@pytest.mark.full
def test_killed_workers_lose_nothing_and_double_nothing(workers: Workers) -> None:
    """kill -9 while a kernel is compiled, and again while one is measured."""
    graph, _ = graphs.import_graph(samples.path("llama_2layer"), "llama", [], None)
    run = run_requests.start_run(
        graph,
        "cpu",
        "cpu",
        {name: max(2, info["min"]) for name, info in graph.symbols.items()},
        None,
        kinds=["gemm"],
        candidate_limit=1,
    )
    workers.start()
    killed_over(workers, Build.objects.filter(state=State.RUNNING), "build begun")
    killed_over(workers, TuningTask.objects.filter(state=State.RUNNING), "measurement begun")
    over = TuningRun.objects.filter(pk=run.pk, state=State.DONE)
    workers.wait(over.exists, "end of the run")

    # A pool's child or a beat that is killed while nothing is done would not be missed.
    workers.wait(lambda: not workers.children(), "end of the workers' children")
    assert Graph.objects.get().state == State.DONE
    assert not Build.objects.exclude(state__in=[State.DONE, State.REJECTED]).exists()
    assert not TuningTask.objects.exclude(state=State.DONE).exists()
    ledger_rows = Candidate.objects.filter(build__isnull=False)
    assert ledger_rows.count() == TuningTask.objects.count() > 3
    assert not ledger_rows.exclude(state=State.DONE).exists()
    assert TuningTask.objects.filter(attempts__gt=1).exists()
    assert ledger_rows.values("result").distinct().count() == ledger_rows.count()
    (last,) = Worker.objects.filter(name__startswith=f"test{workers.count - 1}@")
    assert last.queues == [MEASURING]


@pytest.mark.long
@pytest.mark.parametrize("workers", ["database"], indirect=True)
def test_a_modelled_run_goes_on_where_a_killed_worker_was(workers: Workers) -> None:
    """The model itself, in processes of a worker that has no GPU."""
    graph, _ = graphs.import_graph(samples.path("llama_2layer"), "llama", [], None)
    least = {name: max(2, info["min"]) for name, info in graph.symbols.items()}
    run = run_requests.start_run(
        *(graph, "model:gfx942", "gfx942", least, None), kinds=["attention"], candidate_limit=2
    )
    workers.start_one(COMPILING)
    workers.start_one(MODELLING)
    tried = Candidate.objects.filter(task__run=run)
    workers.wait(tried.filter(modelled__isnull=False).exists, "candidate modelled")
    workers.kill()
    leases.expire_all()
    workers.start_one(COMPILING)
    workers.start_one(MODELLING)
    workers.wait(TuningRun.objects.filter(pk=run.pk, state=State.DONE).exists, "end of the run")

    workers.wait(lambda: not workers.children(), "end of the workers' children")
    figures = [row.modelled for row in tried.filter(build__isnull=False)]
    assert len(figures) == 2
    assert all(figure["time_ns"]["mid"] > 0 and figure["checked_at"] for figure in figures)
    assert tried.filter(chosen=True).count() == 1
    assert not tried.filter(result__isnull=False).exists(), "nothing was measured"
