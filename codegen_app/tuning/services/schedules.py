"""Automatic runs: every night, after an import, when a toolchain changes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import Occasion, RetuneSchedule, TuningRun
from codegen_app.tuning.services import run_requests
from codegen_app.workers import compilers
from codegen_app.workers.models import State
from scheduler.errors import UserError
from scheduler.tuning.budget import Budget

log = logging.getLogger(__name__)


def run_due(now: datetime | None = None) -> list[TuningRun]:
    """Request the runs that are due; safe from any number of workers at once."""
    now = now or timezone.now()
    started: list[TuningRun] = []
    for schedule in RetuneSchedule.objects.filter(enabled=True).exclude(occasion=Occasion.IMPORT):
        with transaction.atomic():
            locked = (
                RetuneSchedule.objects.select_for_update(skip_locked=True, of=("self",))
                .filter(pk=schedule.pk, enabled=True)
                .first()
            )
            if locked is not None and _is_due(locked, now):
                started += _start(locked, _graphs(locked), now)
    return started


def after_import(graph: Graph) -> list[TuningRun]:
    """Request the runs that follow a graph's import; part of the import."""
    enabled = RetuneSchedule.objects.filter(
        enabled=True, occasion=Occasion.IMPORT, graph__isnull=True
    )
    now = timezone.now()
    return [run for schedule in enabled for run in _start(schedule, [graph], now)]


@transaction.atomic
def start_now(
    schedule: RetuneSchedule, actor: AbstractBaseUser | None, why: str = ""
) -> list[TuningRun]:
    """Request a schedule's runs now, whether it is enabled or not; its next night stays."""
    audit.record(actor, "start schedule", schedule, why)
    return _request_runs(schedule, _graphs(schedule))


@transaction.atomic
def set_enabled(
    schedule: RetuneSchedule, actor: AbstractBaseUser | None, *, on: bool, why: str = ""
) -> bool:
    """Enable or disable a schedule; return False if nothing changes."""
    changed = RetuneSchedule.objects.filter(pk=schedule.pk, enabled=not on).update(enabled=on)
    if changed:
        audit.record(actor, "schedule" if on else "unschedule", schedule, why)
    return bool(changed)


def next_night(schedule: RetuneSchedule) -> datetime:
    """Return the first time at its hour (UTC) after it was created or last ran."""
    last = schedule.last_at or timezone.now()
    due = last.replace(hour=schedule.hour, minute=0, second=0, microsecond=0)
    return due if due > last else due + timedelta(days=1)


def _is_due(schedule: RetuneSchedule, now: datetime) -> bool:
    """Return whether its night has come, or the target's compiler here was never seen before.

    Each compiler is remembered, so hosts with different compilers do not alternate as new; the
    first one is no change.
    """
    if schedule.occasion == Occasion.NIGHTLY:
        if schedule.last_at is None:  # just created: its first night is to come
            RetuneSchedule.objects.filter(pk=schedule.pk).update(last_at=now)
            return False
        return now >= next_night(schedule)
    try:
        toolchain = compilers.toolchain_for(schedule.target)
    except UserError:
        return False  # nothing here compiles for it; another host may
    name = f"{toolchain.name} {toolchain.version} {toolchain.path_digest}"
    if name in schedule.toolchains:
        return False
    is_first = not schedule.toolchains
    schedule.toolchains = [*schedule.toolchains, name]
    schedule.save(update_fields=["toolchains"])
    return not is_first


def _graphs(schedule: RetuneSchedule) -> Iterable[Graph]:
    if schedule.graph is not None:
        return [schedule.graph]
    return Graph.objects.filter(state=State.DONE).order_by("pk")


def _start(schedule: RetuneSchedule, graphs: Iterable[Graph], now: datetime) -> list[TuningRun]:
    runs = _request_runs(schedule, graphs)
    RetuneSchedule.objects.filter(pk=schedule.pk).update(last_at=now)
    return runs


def _request_runs(schedule: RetuneSchedule, graphs: Iterable[Graph]) -> list[TuningRun]:
    runs: list[TuningRun] = []
    for graph in graphs:
        latest = (
            graph.tuning_runs.filter(target=schedule.target, imported=None).order_by("-pk").first()
        )
        try:
            run = run_requests.start_run(
                graph,
                schedule.device,
                schedule.target,
                latest.bindings if latest else {},
                schedule.made_by,
                note=latest.note if latest else "",
                budget=Budget(schedule.budget_s, schedule.max_compiles, schedule.max_measurements),
                strategy=schedule.strategy,
                priority=schedule.priority,
                why=f"scheduled {schedule.get_occasion_display()}",
            )
        except UserError as error:
            log.warning("%s: %s cannot be tuned: %s", schedule, graph, error)
            continue
        runs.append(run)
    return runs
