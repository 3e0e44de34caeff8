"""A sign of life says that work can be done: a worker that is idle beside work ends itself."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from codegen_app.graphs.models import TorchComparison
from codegen_app.kernels.models import Modelling, Packing
from codegen_app.site import queued_work
from codegen_app.site.demo.maintenance import _signs_of_life
from codegen_app.tracking.models import Remeasurement
from codegen_app.tuning.models import TuningRun
from codegen_app.workers import compilers
from codegen_app.workers import heartbeat as workers
from codegen_app.workers.liveness import STUCK_AFTER, Progress, StallDetector
from codegen_app.workers.models import State, Worker
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe_devices
from tests.app import factories, track_factories
from tests.support import foreign_kernels

pytestmark = pytest.mark.django_db
LIMIT_S = STUCK_AFTER.total_seconds()
IDLE = Progress(received=3, busy=False)


def watch(*queues: str) -> StallDetector:
    """One that has seen the worker idle already."""
    made = StallDetector(queues, queued_work.has_work)
    made.is_stuck(IDLE, 0.0)
    return made


def test_idle_beside_waiting_work_is_stuck() -> None:
    factories.graph()
    seen = watch("prepare")
    assert not seen.is_stuck(IDLE, 10.0)
    assert not seen.is_stuck(IDLE, 9.0 + LIMIT_S)
    assert seen.is_stuck(IDLE, 10.0 + LIMIT_S)


@pytest.mark.parametrize(
    "meanwhile", [Progress(received=4, busy=False), Progress(received=3, busy=True)], ids=repr
)
def test_a_worker_that_does_something_is_not(meanwhile: Progress) -> None:
    factories.graph()
    seen = watch("prepare")
    assert not seen.is_stuck(IDLE, 10.0)
    assert not seen.is_stuck(meanwhile, LIMIT_S)
    assert not seen.is_stuck(meanwhile, LIMIT_S + 20.0)


def test_nor_is_one_for_which_nothing_waits() -> None:
    graph = factories.graph(state=State.DONE)
    seen = watch("prepare", "compile", "measure.cpu")
    assert not seen.is_stuck(IDLE, 10.0)
    assert not seen.is_stuck(IDLE, 10.0 + LIMIT_S)
    graph.state = State.QUEUED
    graph.save()
    assert not seen.is_stuck(IDLE, 20.0 + LIMIT_S), "it waits since just now"
    assert not watch("compile").is_stuck(IDLE, 10.0 + LIMIT_S), "another's work"


def test_time_without_the_database_does_not_count() -> None:
    factories.graph()
    seen = watch("prepare")
    seen.forget()
    assert not seen.is_stuck(IDLE, 10.0 + LIMIT_S)
    assert seen.is_stuck(IDLE, 10.0 + 2 * LIMIT_S)


def test_what_waits_for_whom() -> None:
    factories.graph()
    assert queued_work.has_work("prepare")
    assert not queued_work.has_work("compile")
    assert not queued_work.has_work("measure.gfx942")
    assert not queued_work.has_work("default")


def packing() -> None:
    graph = factories.graph(state=State.DONE)
    Packing.objects.create(graph=graph, key="k", kernels=1)


def comparison_with_torch() -> None:
    TorchComparison.objects.create(graph=factories.graph(state=State.DONE))


def run_to_plan() -> None:
    graph = factories.graph(state=State.DONE)
    TuningRun.objects.create(graph=graph, device="cpu", target="cpu")


def modelling() -> None:
    Modelling.objects.create(build=factories.done_build(), board="MI300X", version=1)


def foreign_kernel() -> None:
    row = foreign_kernels.looked_at()
    type(row).objects.filter(pk=row.pk).update(state=State.QUEUED)


def remeasurement() -> None:
    series = track_factories.series()
    here = next(one for one in probe_devices() if isinstance(one, DeviceInfo))
    type(series).objects.update(target=here.target, device_name=here.name)
    alert = track_factories.regression()
    Remeasurement.objects.create(alert=alert, series=series, boundary=timezone.now())


@pytest.mark.parametrize(
    ("queue", "make"),
    [
        ("prepare", packing),
        ("prepare", comparison_with_torch),
        ("prepare", run_to_plan),
        ("compile", modelling),
        ("compile", foreign_kernel),
        ("measure.cpu", remeasurement),
    ],
)
def test_all_that_a_queue_has_counts(
    queue: str, make: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilers, "torch_version", lambda: "2.13.0")
    assert not queued_work.has_work(queue)
    make()
    assert queued_work.has_work(queue)
    assert [one for one in ("prepare", "compile", "measure.cpu") if queued_work.has_work(one)] == [
        queue
    ]


def test_the_demo_sees_the_last_sign_of_each_of_its_own_processes() -> None:
    now = timezone.now()

    def sign(name: str, host: str, seconds_ago: int) -> None:
        seen_at = now - timedelta(seconds=seconds_ago)
        Worker.objects.create(name=name, host=host, pid=7, started_at=now, seen_at=seen_at)

    sign("b", socket.gethostname(), 10)
    sign("a", socket.gethostname(), 3600)
    sign("c", "elsewhere", 0)
    assert _signs_of_life() == {7: now - timedelta(seconds=10)}


def test_a_stuck_worker_gives_no_sign_and_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []

    def kill(*call: int) -> None:
        killed.append(call)
        raise SystemExit

    factories.graph()
    clock = iter([0.0, 1.0, 2.0 + LIMIT_S])
    monkeypatch.setattr(workers.os, "kill", kill)
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    heart = workers.WorkerHeartbeat("w@h", ["prepare"], lambda: IDLE, queued_work.has_work)
    facts: dict[str, Any] = {**heart._facts()}
    heart._beat(facts)
    heart._beat(facts)
    seen = Worker.objects.get().seen_at
    with pytest.raises(SystemExit):
        heart._beat(facts)
    assert killed == [(os.getpid(), signal.SIGKILL)]
    assert Worker.objects.get().seen_at == seen
