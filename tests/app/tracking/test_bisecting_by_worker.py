"""Bisection by a worker that builds: real commits, a real command, the worker's own task and the
sandbox."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from codegen_app import tasks
from codegen_app.platform.config.bisect_commands import BisectCommand
from codegen_app.tracking.alerting import commits
from codegen_app.tracking.bisecting import building, walk
from codegen_app.tracking.models import (
    Alert,
    Bisection,
    BisectionMeans,
    BisectionState,
    BisectionStep,
    Datum,
    MeasurementRequest,
    Revision,
    Source,
)
from codegen_app.tracking.queries.histories import requests_page
from codegen_app.tracking.services import alert_pipeline
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from scheduler.errors import UserError
from scheduler.results.points.model import RevisionKey
from scheduler.sandbox import sandbox_status
from tests.support import team
from tests.support.git_repositories import Repository
from tests.support.leases import expire
from tests.support.patience import PATIENCE_S

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(bool(sandbox_status().missing), reason="the sandbox is incomplete here"),
]
STEP, BROKEN = 13, 14  # the first slow commit; one that does not build
MEASURED = (*range(9), *range(18, 24))
SCRIPT = """#!/bin/sh
set -e
git clone -q {mirror} .
git checkout -q "$1"
value=$(cat time)
if [ "$value" = broken ]; then echo "main.c:1: error: expected ';'"; exit 2; fi
cat > "$KILN_RESULTS" << END
{{"kind": "kiln points", "schema": 1, "points": [{{"problem": "gemm", "metric": "time",
 "device": "{device}", "target": "sm_90", "toolchain": "nvcc", "unit": "ns", "value": $value,
 "n": 20}}]}}
END
"""


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """A repository of 24 commits, and its mirror."""
    repository = Repository(tmp_path / "work")
    names = []
    for number in range(24):
        slow = number >= STEP
        text = "broken" if number == BROKEN else "125.0" if slow else "100.0"
        (repository.folder / "time").write_text(text)
        repository.git("add", "time")
        names.append(repository.commit(f"Change {number}"))
    folder = tmp_path / "mirrors"
    folder.mkdir()
    mirror = folder / commits.mirror_name(team.REPOSITORY)
    repository.git("clone", "-q", "--mirror", str(repository.folder), str(mirror))
    return names


@pytest.fixture
def command(tmp_path: Path, names: list[str], settings: Any) -> BisectCommand:
    """What an operator configures, and a live worker that announces it."""
    settings.GIT_MIRRORS = tmp_path / "mirrors"
    settings.HISTORY_DAYS = 0
    settings.VAR_DIR = tmp_path / "var"
    script = tmp_path / "bisect.sh"
    mirror = settings.GIT_MIRRORS / commits.mirror_name(team.REPOSITORY)
    script.write_text(SCRIPT.format(mirror=mirror, device=team.MACHINE.device))
    script.chmod(0o755)
    row = BisectCommand((str(script),), read=(settings.GIT_MIRRORS,), minutes=5)
    settings.BISECT_COMMANDS = {team.REPOSITORY: row}
    now = timezone.now()
    Worker.objects.create(
        name="builder",
        host="h",
        pid=1,
        started_at=now,
        seen_at=now,
        queues=["bisect"],
        repositories=[{"name": team.REPOSITORY, "minutes": 5}],
    )
    return row


@pytest.fixture
def person() -> User:
    return User.objects.create_superuser("a")


@pytest.fixture
def alert(tmp_path: Path, names: list[str], command: BisectCommand) -> Alert:
    """Of a series that was measured at some commits; the others are known from the mirror alone."""
    repository = Repository(tmp_path / "work")
    for place in MEASURED:
        at = datetime.fromisoformat(repository.git("show", "-s", "--format=%cI", names[place]))
        key = RevisionKey(names[place], at, team.TRUNK, team.REPOSITORY)
        value, code = (125.0, "b") if place >= STEP else (100.0, "a")
        team.push([team.point("gemm", key, value, team.MACHINE.with_code(code))])
    assert commits.read_waiting() == 1
    return Alert.objects.get()


def start(alert: Alert, person: User) -> Bisection:
    return walk.start(alert, 20, person, BisectionMeans.WORKER)


def script_with(settings: Any, tmp_path: Path, text: str) -> None:
    """Configure another command."""
    script = tmp_path / "other.sh"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    known = settings.BISECT_COMMANDS[team.REPOSITORY]
    settings.BISECT_COMMANDS = {team.REPOSITORY: replace(known, command=(str(script),))}


def first_step(alert: Alert, person: User) -> BisectionStep:
    """Take the first step of a bisection with the configured command."""
    start(alert, person)
    pk = BisectionStep.objects.get().pk
    building.run(claim())
    return BisectionStep.objects.get(pk=pk)


def claim() -> BisectionStep:
    row = work.claim_next(building.queued_steps(), "w:1")
    assert row is not None
    return row


def test_a_worker_walks_to_the_commit(alert: Alert, names: list[str], person: User) -> None:
    start(alert, person)
    assert Revision.objects.filter(repository=team.REPOSITORY).count() == len(names)
    assert requests_page({}, 0, 10) == ([], None), "CI is not asked as well"
    turns = 0
    while Bisection.objects.get().is_open:
        tasks.bisect()
        alert_pipeline.process_pending()
        turns += 1
        assert turns < len(names)
    row = Bisection.objects.get()
    assert row.culprit is not None, [step.reason for step in BisectionStep.objects.all()]
    assert (row.state, row.culprit.name) == (BisectionState.DONE, names[STEP])
    built = Datum.objects.filter(source=Source.AGAIN)
    assert 3 <= built.count() <= 4
    assert {point.value for point in built} == {100.0, 125.0}
    (skipped,) = row.skipped.all() or [None]
    if skipped is not None:
        assert (skipped.revision.name, "error: expected" in skipped.reason) == (names[BROKEN], True)
    assert not list(Path(building.settings.VAR_DIR, "bisect").iterdir()), "folders are removed"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'cc: no such option'; exit 3", "exit status 3: cc: no such option"),
        ("true", "wrote no results"),
        ('echo "{" > "$KILN_RESULTS"', "results: "),
        ('ln -s /etc/passwd "$KILN_RESULTS"', "results: "),
        ('mkdir "$KILN_RESULTS"', "results: Is a directory"),
        (
            'echo \'{"kind": "kiln points", "schema": 1, "points": [{"problem": "x", "value": 1,'
            ' "device": "d", "metric": "time", "unit": "ns"}]}\' > "$KILN_RESULTS"',
            "no point of the series",
        ),
        ("mkdir -p a/b; chmod 500 a; exit 1", "exit status 1"),
    ],
)
def test_a_revision_that_cannot_be_measured_is_skipped_with_its_log(
    alert: Alert,
    person: User,
    settings: Any,
    tmp_path: Path,
    script: str,
    reason: str,
) -> None:
    script_with(settings, tmp_path, script)
    step = first_step(alert, person)
    assert (step.state, step.request.is_open) == (State.REJECTED, False)
    assert reason in step.reason
    assert Bisection.objects.get().skipped.get().reason == step.reason
    assert BisectionStep.objects.filter(state=State.QUEUED).count() == 1, "the next revision"
    assert not list((tmp_path / "var" / "bisect").iterdir())


def test_a_command_that_takes_too_long_is_ended(
    alert: Alert, person: User, settings: Any, tmp_path: Path
) -> None:
    script_with(settings, tmp_path, "setsid sleep 600 & sleep 600")
    known = settings.BISECT_COMMANDS[team.REPOSITORY]
    settings.BISECT_COMMANDS = {team.REPOSITORY: replace(known, minutes=1 / 120)}  # type: ignore[arg-type]
    step = first_step(alert, person)
    assert step.reason == "the command failed, stopped after 0.5 s"


def test_a_command_that_is_missing_is_the_machines_fault(
    alert: Alert, person: User, settings: Any
) -> None:
    known = settings.BISECT_COMMANDS[team.REPOSITORY]
    settings.BISECT_COMMANDS = {team.REPOSITORY: replace(known, command=("/nonexistent",))}
    start(alert, person)
    tasks.bisect()
    step = BisectionStep.objects.get()
    assert (step.state, step.request.is_open) == (State.QUEUED, True)
    assert "KILN_BISECT: /nonexistent cannot be executed" in step.reason


def test_the_command_sees_nothing_of_kiln(
    alert: Alert,
    person: User,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KILN_SECRET_KEY", "secret")
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "secret-key").write_text("secret")
    script = f"env; cat {tmp_path}/var/secret-key /proc/$PPID/environ; ls; exit 1"
    script_with(settings, tmp_path, script)
    step = first_step(alert, person)
    shown = {line.partition("=")[0] for line in step.detail.splitlines() if "=" in line}
    assert shown == {
        *("PATH", "LC_ALL", "GIT_CONFIG_NOSYSTEM", "HOME", "TMPDIR", "PWD"),
        *("KILN_REVISION", "KILN_RESULTS"),
    }
    assert step.detail.count("Permission denied") == 2


def test_cancelling_ends_the_command(
    alert: Alert, person: User, settings: Any, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    script_with(settings, tmp_path, f"echo > {started}; sleep 600")
    known = settings.BISECT_COMMANDS[team.REPOSITORY]
    settings.BISECT_COMMANDS = {team.REPOSITORY: replace(known, write=(started,))}
    row = start(alert, person)
    step = claim()
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(attempt, step)
        started.read_text()  # waits for the command
        assert walk.cancel(row, person)
        ended.result(PATIENCE_S)
    step.refresh_from_db()
    assert (step.state, step.reason) == (State.CANCELLED, "no longer needed")
    assert not MeasurementRequest.objects.filter(answered_at=None, withdrawn_at=None).exists()


def attempt(step: BisectionStep) -> None:
    """Work on a step in another thread, which has its own connection."""
    try:
        work.attempt(step, building.run)
    finally:
        connection.close()


def test_a_worker_that_was_killed_is_resumed(
    alert: Alert, names: list[str], person: User, tmp_path: Path
) -> None:
    start(alert, person)
    dead = claim()
    remains = tmp_path / "var" / "bisect" / f"{dead.pk}-x" / "checkout"
    remains.mkdir(parents=True)
    expire(BisectionStep.objects.all())
    assert work.requeue_expired() == 1
    tasks.bisect()
    assert BisectionStep.objects.get(pk=dead.pk).state == State.DONE
    assert not remains.exists()


def test_only_who_can_build_is_offered(
    alert: Alert, person: User, client: Client, settings: Any
) -> None:
    client.force_login(person)
    address = f"/alerts/{alert.pk}/actions"
    options = {row["means"]: row for row in client.get(f"{address}.json").json()["bisect"]}
    assert options["worker"]["reasons"] == []
    assert "builder" in options["worker"]["note"] and "at most 5 min" in options["worker"]["note"]
    body = {"limit": "20", "means": "worker"}
    page = client.post(f"/alerts/{alert.pk}/bisect", body, follow=True).content.decode()
    assert "The first revision was queued" in page
    assert "Waiting" not in page and "Requests to senders" not in page
    settings.BISECT_COMMANDS = {}
    assert not building.queued_steps().exists(), "this host builds nothing"
    Worker.objects.update(queues=[], stopped_at=timezone.now())
    assert "Waiting: no worker that builds" in client.get(address).content.decode()
    walk.cancel(Bisection.objects.get(), person)
    with pytest.raises(UserError, match="no worker that builds"):
        start(alert, person)
