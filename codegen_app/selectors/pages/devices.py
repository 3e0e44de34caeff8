"""Devices, environments and what can be compiled for."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from codegen_app.models import Environment
from codegen_app.selectors.pages.overview import WorkerRow, worker_rows
from scheduler import targets
from scheduler.fence import in_force
from scheduler.runtime.device import notes_of


@dataclass(frozen=True)
class EnvironmentRow:
    """Surroundings in which something was measured."""

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


@dataclass(frozen=True)
class FenceRow:
    """What keeps compilers, kernels and readers of files to their own, and where."""

    where: str
    parts: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class TargetRow:
    """What can be compiled for, and its hardware. Registers of one lane; LDS a compute unit; 0 or
    "" where that is not known of another maker's hardware."""

    name: str
    family: str
    wavefront: int
    matrix: str
    vgprs_per_simd: int
    vgpr_granule: int
    max_waves_per_simd: int
    lds_bytes: int
    emulates: str


@dataclass(frozen=True)
class Devices:
    """The page of devices."""

    workers: tuple[WorkerRow, ...]
    fences: tuple[FenceRow, ...]
    environments: tuple[EnvironmentRow, ...]
    targets: tuple[TargetRow, ...]


def devices() -> Devices:
    """Workers with their devices, environments, targets (2 queries)."""
    environments = Environment.objects.annotate(count=Count("results")).order_by("-first_seen_at")
    workers = worker_rows()
    return Devices(
        workers=workers,
        fences=_fences(workers),
        environments=tuple(
            EnvironmentRow(
                digest=row.digest,
                device=row.device,
                device_name=row.device_name,
                target=row.target,
                driver=row.driver,
                runtime=row.runtime,
                compiler=row.compiler,
                compute_units=row.compute_units,
                memory_bytes=row.memory_bytes,
                emulated=row.emulated,
                attributes=row.attributes,
                notes=notes_of(row.target, row.attributes),
                results=row.count,
                first_seen_at=row.first_seen_at,
            )
            for row in environments
        ),
        targets=tuple(_target_row(targets.find(name)) for name in targets.names()),
    )


def _fences(workers: Sequence[WorkerRow]) -> tuple[FenceRow, ...]:
    """Where files are read, which is here, and where workers are that live; equal ones once."""
    own = tuple(asdict(part) for part in in_force().parts)
    rows = [FenceRow(f"pages on {socket.gethostname()}", own)]
    for worker in workers:
        row = FenceRow(f"workers on {worker.host}", worker.fence)
        if worker.alive and worker.fence and row not in rows:
            rows.append(row)
    return tuple(rows)


def _target_row(target: targets.Target) -> TargetRow:
    facts = target.facts()
    return TargetRow(
        name=target.name,
        family=target.family,
        wavefront=target.wavefront,
        matrix=facts.get("matrix", ""),
        vgprs_per_simd=facts.get("vgprs_per_simd", 0),
        vgpr_granule=facts.get("vgpr_granule", 0),
        max_waves_per_simd=facts.get("max_waves_per_simd", 0),
        lds_bytes=facts.get("lds_bytes", 0),
        emulates=target.emulates,
    )
