"""The workers' tasks: claim waiting rows, one after the other, and call their service.

A message says that there may be work, the rows say which: no task carries an id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from celery import shared_task
from django.db.models import QuerySet

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import torch_comparisons
from codegen_app.kernels.modelling import jobs as modelling
from codegen_app.kernels.models import Packing
from codegen_app.kernels.services import builds, external_kernels, preparation
from codegen_app.remote import build_requests
from codegen_app.site import worker_process  # noqa: F401 - connects the signals of the worker
from codegen_app.tracking.bisecting import building
from codegen_app.tracking.notifying import sender
from codegen_app.tracking.remeasuring import jobs as remeasuring
from codegen_app.tracking.services import alert_pipeline
from codegen_app.tuning.services import ledger, measurement_tasks, packing, planning
from codegen_app.workers import controls, work
from codegen_app.workers.models import Work
from codegen_app.workers.queue import Kind, queue_name

W = TypeVar("W", bound=Work)


@shared_task  # type: ignore[untyped-decorator]
def prepare() -> None:
    """Prepare waiting graphs, plan the runs, pack bundles once no graph waits, and compare graphs
    with torch once nothing else waits."""
    name = queue_name(Kind.PREPARE)
    while controls.may_take(name):
        planning.plan_waiting()  # requested by a person, and quick beside a preparation
        _drain(name, Graph.objects.all(), preparation.prepare)
        planning.plan_waiting()
        if not (
            _run_next(name, Packing.objects.all(), packing.pack)
            or _run_next(name, torch_comparisons.queued_comparisons(), torch_comparisons.run)
        ):
            break


@shared_task  # type: ignore[untyped-decorator]
def compile() -> None:
    """Compile waiting builds, and model kernels once no build waits; before each build answer the
    remote searches, which hold a device while they wait."""
    name = queue_name(Kind.COMPILE)
    while True:
        _answer_searches(name)
        if _run_next(name, builds.local_builds(), builds.run_build):
            continue
        if not (
            _run_next(name, external_kernels.queued_kernels(), external_kernels.run)
            or _run_next(name, modelling.queued_modellings(), modelling.run)
        ):
            break


@shared_task  # type: ignore[untyped-decorator]
def measure(target: str) -> None:
    """Measure what waits for an architecture on this host's device: before each task of a tuning
    run, an alert's remeasurements."""
    name = queue_name(Kind.MEASURE, target)
    while _run_next(name, remeasuring.queued_remeasurements(target), remeasuring.run) or _run_next(
        name, ledger.ready_tasks(target), measurement_tasks.run_task
    ):
        pass


@shared_task  # type: ignore[untyped-decorator]
def bisect() -> None:
    """Build and measure the revisions that bisections request of this host."""
    _drain(queue_name(Kind.BISECT), building.queued_steps(), building.run)


@shared_task  # type: ignore[untyped-decorator]
def detect() -> None:
    """Detect changes at new points, explain them, and raise their alerts."""
    if controls.may_take(queue_name(Kind.DETECT)):
        alert_pipeline.process_pending()


@shared_task  # type: ignore[untyped-decorator]
def notify() -> None:
    """Send the due notifications."""
    sender.send_due()


def _answer_searches(name: str) -> None:
    if controls.may_take(name):
        build_requests.answer_requests()


def _drain(name: str, waiting: QuerySet[W], service: Callable[[W], None]) -> None:
    """Claim and run rows until none waits."""
    while _run_next(name, waiting, service):
        pass


def _run_next(name: str, waiting: QuerySet[W], service: Callable[[W], None]) -> bool:
    """Claim the next row and run it; return False if none waits, or this worker is to take nothing
    of the queue of that name."""
    if not controls.may_take(name):
        return False
    row = work.claim_next(waiting, work.worker_name())
    if row is None:
        return False
    work.attempt(row, service)
    return True
