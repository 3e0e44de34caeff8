"""Devices, environments and compilation targets."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, F

from codegen_app.platform.config import sandbox
from codegen_app.tuning.models import Environment, ResultImport
from codegen_app.web.row import build_row
from codegen_app.web.tables import Column, Kind
from codegen_app.workers.rows import WorkerRow, worker_rows
from scheduler import targets
from scheduler.agent.version import generator_digest
from scheduler.runtime.device import notes_of
from scheduler.sandbox import sandbox_status
from scheduler.targets.model import HardwareFigure
from scheduler.targets.terms import Terms
from scheduler.version import kiln_version

_GIB = 2**30


@dataclass(frozen=True)
class EnvironmentRow:
    """An environment in which something was measured; ``origins`` are those of imported results."""

    digest: str
    device: str
    device_name: str
    target: str
    driver: str
    runtime: str
    compiler: str
    compute_units: int
    memory_bytes: int
    emulated: bool
    attributes: Mapping[str, Any]
    notes: tuple[str, ...]
    results: int
    first_seen_at: datetime
    origins: tuple[str, ...]


COLUMNS: tuple[Column[EnvironmentRow], ...] = (
    Column("device", "Device", lambda row: f"{row.device_name} {row.device}"),
    Column("target", "Target", lambda row: row.target),
    Column("emulated", "Emulated", lambda row: "emulated" if row.emulated else None, shown=False),
    Column("compiler", "Compiler", lambda row: row.compiler),
    Column("driver", "Driver", lambda row: row.driver or None, sparse=True),
    Column("runtime", "Runtime", lambda row: row.runtime or None, sparse=True, shown=False),
    Column("units", "Compute units", lambda row: row.compute_units, Kind.WHOLE),
    Column("memory", "Memory", lambda row: row.memory_bytes / _GIB, Kind.RATIO, "GiB"),
    Column("results", "Results", lambda row: row.results, Kind.WHOLE),
    Column("first", "First seen", lambda row: row.first_seen_at, Kind.MOMENT),
    Column("digest", "Hash", lambda row: row.digest, Kind.CODE, shown=False),
    Column("notes", "Notes", lambda row: "; ".join((*row.origins, *row.notes)) or None),
)


@dataclass(frozen=True)
class SandboxRow:
    """The isolation of compilers, kernels and file readers, and the machine it applies to."""

    where: str
    parts: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class TargetRow:
    """A compilation target; ``facts`` lists its hardware in its vendor's terms."""

    name: str
    family: str
    wavefront: int
    matrix: str
    emulates: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class TargetTable:
    """The targets of one vendor, with the figures that they have in common."""

    words: Terms
    figures: tuple[HardwareFigure, ...]
    rows: tuple[TargetRow, ...]


@dataclass(frozen=True)
class Absence:
    """Why workers have no device of a kind: each distinct reason with its workers."""

    kind: str
    reason: str
    workers: tuple[str, ...]


@dataclass(frozen=True)
class Devices:
    """The page of devices."""

    workers: tuple[WorkerRow, ...]
    fences: tuple[SandboxRow, ...]
    uploads_disabled_reason: str  # on the machine that serves pages; "" if uploads are read
    environments: tuple[EnvironmentRow, ...]
    targets: tuple[TargetRow, ...]
    kiln: str  # the version that serves the page
    generator: str  # the kernel generator's version: remote workers need the same

    @property
    def online(self) -> int:
        """The number of workers that are online."""
        return sum(worker.alive for worker in self.workers)

    @property
    def absences(self) -> tuple[Absence, ...]:
        """Kinds of devices that live workers do not have, with the reasons."""
        workers_by_absence: dict[tuple[str, str], list[str]] = defaultdict(list)
        for worker in self.workers:
            for absence in worker.absent if worker.alive else ():
                workers_by_absence[absence["kind"], absence["reason"]].append(worker.name)
        return tuple(Absence(*why, tuple(names)) for why, names in workers_by_absence.items())

    @property
    def target_tables(self) -> tuple[TargetTable, ...]:
        """The targets, one table per vendor."""
        by_maker: dict[tuple[Terms, tuple[HardwareFigure, ...]], list[TargetRow]] = {}
        for row in self.targets:
            target = targets.find(row.name)
            by_maker.setdefault((target.words, target.hardware.figures), []).append(row)
        return tuple(TargetTable(*maker, tuple(rows)) for maker, rows in by_maker.items())


def devices() -> Devices:
    """Return workers with their devices, environments and targets (3 queries)."""
    # The origins of each environment's imported results, each once.
    origins: dict[int, dict[str, None]] = defaultdict(dict)
    imports = ResultImport.objects.annotate(environment=F("run__tasks__results__environment"))
    for imported in imports.order_by("measured_at").distinct():
        origins[imported.environment][str(imported)] = None
    environments = Environment.objects.annotate(count=Count("results")).order_by("-first_seen_at")
    workers = worker_rows()
    target_rows = []
    for name in targets.names():
        target = targets.find(name)
        facts = target.facts()
        target_rows.append(
            build_row(TargetRow, target, matrix=facts.get("matrix", ""), facts=facts)
        )
    return Devices(
        workers=workers,
        fences=_sandbox_rows(workers),
        uploads_disabled_reason=sandbox.uploads_disabled_reason(settings.FENCE),
        environments=tuple(
            build_row(
                EnvironmentRow,
                row,
                notes=notes_of(row.target, row.attributes),
                results=row.count,
                origins=tuple(origins[row.pk]),
            )
            for row in environments
        ),
        targets=tuple(target_rows),
        kiln=kiln_version(),
        generator=generator_digest(),
    )


def _sandbox_rows(workers: Sequence[WorkerRow]) -> tuple[SandboxRow, ...]:
    """Return the isolation of file readers, on this machine, and of live workers; equal rows
    once."""
    parts = tuple(asdict(part) for part in sandbox_status().parts)
    rows = [SandboxRow(f"web processes on {socket.gethostname()}", parts)]
    for worker in workers:
        row = SandboxRow(f"workers on {worker.host}", worker.fence)
        if worker.alive and worker.fence and row not in rows:
            rows.append(row)
    return tuple(rows)
