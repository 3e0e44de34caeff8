"""The overview: what moved, runs, was made lately, was rejected and why; and who works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from codegen_app.models import Build, Candidate, Graph, State, TuningRun
from codegen_app.models.worker import Worker
from codegen_app.selectors.pages.graphs import GraphRow, graph_rows
from codegen_app.selectors.pages.overview_changes import OverviewChanges, overview_changes
from codegen_app.selectors.pages.runs import RunRow, run_rows

_REJECTED = (State.REJECTED, State.QUARANTINED)


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
    fence: tuple[Mapping[str, Any], ...]
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
class RejectionCount:
    """A reason for which builds or candidates were rejected, and how often."""

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
    rejections: tuple[RejectionCount, ...]
    changes: OverviewChanges


def overview() -> Overview:
    """Everything on the first page (14 queries)."""
    return Overview(
        graphs=graph_rows(Graph.objects.all()[:12]),
        runs=run_rows(TuningRun.objects.all()[:12]),
        workers=worker_rows(),
        rejections=_rejections(),
        changes=overview_changes(),
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
            fence=tuple(worker.fence),
            seen_at=worker.seen_at,
        )
        for worker in Worker.objects.order_by("-seen_at")[:50]
    ]
    return tuple(sorted(rows, key=lambda row: (not row.alive, row.name)))


def _rejections() -> tuple[RejectionCount, ...]:
    """The most frequent rejections of what the legality rules allowed (2 queries)."""
    rejections = []
    for what, rows in (
        ("build", Build.objects.filter(state__in=_REJECTED)),
        ("measurement", Candidate.objects.filter(state__in=_REJECTED).exclude(stage="rule")),
    ):
        counted = rows.order_by().values("stage", "reason").annotate(count=Count("pk"))
        rejections += [
            RejectionCount(what, row["stage"], row["reason"], row["count"])
            for row in counted.order_by("-count", "reason")[:6]
        ]
    return tuple(rejections)
