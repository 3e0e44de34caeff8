"""The overview: what runs, what was made lately, what was lost, and who works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from codegen_app.models import Build, Candidate, Graph, State, TuningRun
from codegen_app.models.worker import Worker
from codegen_app.selectors.pages.graphs import GraphRow, graph_rows
from codegen_app.selectors.pages.runs import RunRow, run_rows

_LOST = (State.REJECTED, State.QUARANTINED)


@dataclass(frozen=True)
class DeviceGroup:
    """Devices of one name; the emulation, which is one for each target, under its own."""

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class WorkerRow:
    """One worker process and what it can run on."""

    name: str
    host: str
    alive: bool
    queues: tuple[str, ...]
    devices: tuple[Mapping[str, Any], ...]
    absent: tuple[Mapping[str, Any], ...]
    toolchains: tuple[Any, ...]
    seen_at: datetime

    @property
    def device_groups(self) -> tuple[DeviceGroup, ...]:
        """Its devices by name, in the worker's order."""
        ids: dict[str, list[str]] = {}
        for device in self.devices:
            name = "CPU emulation" if device.get("emulated") else device["name"]
            ids.setdefault(name, []).append(device["id"])
        return tuple(DeviceGroup(name, tuple(found)) for name, found in ids.items())


@dataclass(frozen=True)
class Loss:
    """A reason for which builds or candidates were lost, and how often."""

    what: str
    stage: str
    reason: str
    count: int


@dataclass(frozen=True)
class Overview:
    """The first page."""

    graphs: tuple[GraphRow, ...]
    runs: tuple[RunRow, ...]
    workers: tuple[WorkerRow, ...]
    losses: tuple[Loss, ...]


def overview() -> Overview:
    """Everything on the first page (9 queries)."""
    return Overview(
        graphs=graph_rows(Graph.objects.all()[:12]),
        runs=run_rows(TuningRun.objects.all()[:12]),
        workers=worker_rows(),
        losses=_losses(),
    )


def worker_rows() -> tuple[WorkerRow, ...]:
    """Workers, those alive first (1 query)."""
    rows = [
        WorkerRow(
            name=worker.name,
            host=worker.host,
            alive=worker.is_alive,
            queues=tuple(worker.queues),
            devices=tuple(worker.devices),
            absent=tuple(worker.absent),
            toolchains=tuple(worker.toolchains),
            seen_at=worker.seen_at,
        )
        for worker in Worker.objects.order_by("-seen_at")[:50]
    ]
    return tuple(sorted(rows, key=lambda row: (not row.alive, row.name)))


def _losses() -> tuple[Loss, ...]:
    """What was lost most often after a rule let it through (2 queries)."""
    losses = []
    for what, rows in (
        ("build", Build.objects.filter(state__in=_LOST)),
        ("measurement", Candidate.objects.filter(state__in=_LOST).exclude(stage="rule")),
    ):
        counted = rows.order_by().values("stage", "reason").annotate(count=Count("pk"))
        losses += [
            Loss(what, row["stage"], row["reason"], row["count"])
            for row in counted.order_by("-count", "reason")[:6]
        ]
    return tuple(losses)
