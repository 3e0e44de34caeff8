"""Real worker processes on the filesystem broker, killed in the middle of their work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connection

from codegen_app.models import Build, Candidate, Graph, State, TuningRun, TuningTask, Worker
from codegen_app.services import graphs, tuning
from scheduler import samples

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 240


class Workers:
    """Starts Celery workers as the demo does, on the test's database and in its folder."""

    def __init__(self, var: Path) -> None:
        database = connection.settings_dict
        self._var = var
        self._running: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "DATABASE_URL": f"postgresql://{database['USER']}:{database['PASSWORD']}@/"
            f"{database['NAME']}?host={database['HOST']}&port={database['PORT'] or 5432}",
            "KILN_VAR": str(var),
            "TMPDIR": str(var),
            "KILN_BROKER_URL": "filesystem://",
            "KILN_CODE_CACHE": str(django_settings.CODE_CACHE_DIR),
            "KILN_WORK_LEASE_S": "2",
        }

    def start(self) -> subprocess.Popen[bytes]:
        command = (
            *(sys.executable, "-m", "celery", "--app", "codegen_app.config.celery", "worker"),
            *("--queues", "prepare,compile,default,measure.cpu", "--concurrency", "1", "--beat"),
            *("--schedule", str(self._var / "beat"), "--hostname", f"test{len(self._running)}@%h"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        )
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
        return process

    def kill(self) -> None:
        """kill -9 for the worker, its pool and whatever they started."""
        for process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline or all(one.poll() is not None for one in self._running):
                log = (self._var / "worker.log").read_text()[-4000:]
                pytest.fail(f"no {what}; the workers said:\n{log}")
            time.sleep(0.05)


@pytest.fixture
def workers(transactional_db: None, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(tmp_path)
    yield made
    made.kill()


def test_killed_workers_lose_nothing_and_double_nothing(workers: Workers) -> None:
    """kill -9 while a kernel is compiled, and again while one is measured."""
    graph, _ = graphs.import_graph(samples.path("llama_2layer"), "llama", [], None)
    run = tuning.start_run(
        graph,
        "cpu",
        "cpu",
        {name: max(2, info["min"]) for name, info in graph.symbols.items()},
        None,
        kinds=["gemm"],
        candidate_limit=1,
    )
    workers.start()
    workers.wait(Build.objects.filter(state=State.RUNNING).exists, "build begun")
    workers.kill()
    workers.start()
    workers.wait(TuningTask.objects.filter(state=State.RUNNING).exists, "measurement begun")
    workers.kill()
    workers.start()
    over = TuningRun.objects.filter(pk=run.pk, state=State.DONE)
    workers.wait(over.exists, "end of the run")

    assert Graph.objects.get().state == State.DONE
    assert not Build.objects.exclude(state__in=[State.DONE, State.REJECTED]).exists()
    assert not TuningTask.objects.exclude(state=State.DONE).exists()
    ledger_rows = Candidate.objects.filter(build__isnull=False)
    assert ledger_rows.count() == TuningTask.objects.count() > 3
    assert not ledger_rows.exclude(state=State.DONE).exists()
    assert TuningTask.objects.filter(deaths=1).count() >= 1
    assert ledger_rows.values("result").distinct().count() == ledger_rows.count()
    assert Worker.objects.get(name__startswith="test2@").is_alive
