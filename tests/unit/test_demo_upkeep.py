"""The demo's own housekeeping: restarts, silent workers, logs and temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from codegen_app.platform.postgres import Cluster
from codegen_app.site.demo import maintenance, preparation, processes
from codegen_app.site.demo.processes import Program, Supervisor

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (processes, maintenance):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """One that adopts nobody: this process has other children."""
    made = Supervisor.__new__(Supervisor)
    made.cwd, made.logs, made.environment, made._running = tmp_path, tmp_path, os.environ, []
    yield made
    for one in made._running:
        one.process.kill()
        one.process.wait()


def ended(supervisor: Supervisor) -> int:
    (one,) = supervisor._running
    one.process.wait()
    return one.process.pid


def test_restarts_are_paused_longer_and_longer_and_never_given_up(
    supervisor: Supervisor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_reap", lambda _: None)
    said: list[str] = []
    supervisor.start(Program("false", ("false",)))
    pauses = []
    for _ in range(9):
        before, began = ended(supervisor), clock.now
        supervisor.watch(said.append)
        while not supervisor.pids() and supervisor._running[0].process.pid == before:
            clock.now += 0.5
            supervisor.watch(said.append)
        pauses.append(clock.now - began)
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30, 30]
    assert len(said) == 9
    assert "false ended with 1" in said[0]
    assert "restarting it in 2 s" in said[2]


def test_a_program_that_stayed_up_is_forgiven(
    supervisor: Supervisor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_reap", lambda _: None)
    said: list[str] = []
    supervisor.start(Program("cat", ("sleep", "1000")))
    for _ in range(20):
        clock.now += 61
        (pid,) = supervisor.pids()
        supervisor.kill(pid)
        ended(supervisor)
        supervisor.watch(said.append)
        assert supervisor.pids(), "started again at once"
    assert all(line.endswith("restarting it") for line in said)


def test_a_log_that_is_held_open_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    write = "import sys; print('x' * 99, flush=True); sys.stdin.readline(); print('after')"
    with (
        log.open("ab") as file,
        subprocess.Popen(
            [sys.executable, "-c", write], stdin=subprocess.PIPE, stdout=file
        ) as writer,
    ):
        while log.stat().st_size < 100:
            assert writer.poll() is None
        processes.keep_short(log, 100)
        assert log.stat().st_size == 100, "not longer than it may be"
        processes.keep_short(log, 99)
        assert log.stat().st_size == 0
        writer.communicate(b"\n")
    assert log.read_text() == "after\n"
    assert (tmp_path / "web.log.1").read_text() == "x" * 99 + "\n"
    processes.keep_short(tmp_path / "none.log")


def test_a_log_is_cut_where_there_is_no_room_for_its_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        (tmp_path / "web.log.1").write_text("half")
        raise OSError(28, "No space left on device")

    (tmp_path / "web.log").write_text("x" * 100)
    monkeypatch.setattr(processes.shutil, "copyfile", full)
    processes.keep_short(tmp_path / "web.log", 99)
    assert [path.name for path in tmp_path.iterdir()] == ["web.log"]
    assert (tmp_path / "web.log").stat().st_size == 0


def test_a_worker_without_a_new_sign_is_found() -> None:
    silence, pids = maintenance.SilenceTracker(), {1: "compile", 2: "measure"}

    def look(now: float, first: int, second: int) -> list[int]:
        signs = {1: NOON + timedelta(seconds=first), 2: NOON + timedelta(seconds=second)}
        return list(silence.silent(pids, signs, now))

    assert look(0, 0, 0) == []
    assert look(100, 0, 100) == []
    assert look(120, 0, 120) == [1]
    assert look(130, 0, -999) == [], "any change is a sign, whatever a clock says"


def test_a_database_that_is_away_speaks_against_nobody() -> None:
    silence = maintenance.SilenceTracker()
    assert list(silence.silent({1: "compile"}, {1: NOON}, 0)) == []
    assert list(silence.silent({1: "compile"}, None, 500)) == []
    assert list(silence.silent({1: "compile"}, {1: NOON}, 501)) == []
    assert list(silence.silent({1: "compile"}, {1: NOON}, 622)) == [1]


def test_a_worker_that_never_gave_a_sign_is_found() -> None:
    silence = maintenance.SilenceTracker()
    assert list(silence.silent({1: "compile"}, {}, 0)) == []
    assert list(silence.silent({1: "compile"}, {}, 121)) == [1]


def test_temporary_files_that_nobody_changes_are_swept(tmp_path: Path) -> None:
    for name in ("left", "used"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "used")
    sweeper, day = maintenance.Sweeper(tmp_path), maintenance._OLD_S
    sweeper.sweep(0)
    os.utime(tmp_path / "used" / "file", (0, 2**31))
    (tmp_path / "new").touch()
    os.utime(tmp_path / "new", (0, 0))  # what a clock that jumps does not make old
    sweeper.sweep(day - 1)
    assert len(list(tmp_path.iterdir())) == 4
    sweeper.sweep(day)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "used"]
    maintenance.Sweeper(tmp_path / "none").sweep(0)


def test_a_stopped_worker_is_replaced(
    supervisor: Supervisor, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that hangs: it cannot see itself that it is stuck."""
    monkeypatch.setattr(processes, "_reap", lambda _: None)
    supervisor.start(Program("worker-compile-1", ("sleep", "1000")))
    supervisor.start(Program("web", ("sleep", "1000")))
    worker, web = supervisor.pids()
    os.kill(worker, signal.SIGSTOP)
    monkeypatch.setattr(maintenance, "_signs_of_life", lambda: {worker: NOON})
    keeper = maintenance.Maintenance(supervisor, tmp_path / "tmp", Cluster(tmp_path, tmp_path, ""))
    said: list[str] = []
    for clock.now in (1.0, 100.0, 122.0):
        keeper.run_due(said.append)
    assert said == ["worker-compile-1 gave no sign of life for 120 s; it is ended"]
    supervisor._running[0].process.wait()
    supervisor.watch(said.append)
    assert worker not in supervisor.pids()
    assert web in supervisor.pids()
    assert len(supervisor.pids()) == 2


def test_what_earlier_versions_kept_goes(tmp_path: Path) -> None:
    (tmp_path / "queue" / "messages").mkdir(parents=True)
    for name in ("queue/messages/1.msg", "beat-schedule", "beat-schedule.db", "secret-key"):
        (tmp_path / name).touch()
    preparation.remove_outdated(tmp_path)
    preparation.remove_outdated(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["secret-key"]


def test_the_databases_log_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[Path] = []
    monkeypatch.setattr(maintenance, "keep_short", cut.append)
    monkeypatch.setattr(maintenance, "_signs_of_life", lambda: None)
    supervisor = Supervisor.__new__(Supervisor)
    supervisor._running = []
    cluster = Cluster(tmp_path, tmp_path, "")
    maintenance.Maintenance(supervisor, tmp_path, cluster).run_due(pytest.fail)
    assert cut == [cluster.log]
