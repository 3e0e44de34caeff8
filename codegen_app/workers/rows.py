"""Workers as the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codegen_app.web.row import build_row
from codegen_app.workers.models.worker import Control, Worker


@dataclass(frozen=True)
class DeviceGroup:
    """Devices of one name; the emulation, which has one per target, under its own name."""

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class WorkerRow:
    """One worker process and what it can run on. It builds revisions of ``repositories`` for
    bisections."""

    name: str
    host: str
    alive: bool
    queues: tuple[str, ...]
    devices: tuple[Mapping[str, Any], ...]
    absent: tuple[Mapping[str, Any], ...]
    toolchains: tuple[Any, ...]
    fence: tuple[Mapping[str, Any], ...]
    repositories: tuple[str, ...]
    seen_at: datetime
    id: int
    remote: bool
    control: str
    control_label: str
    pinned_to: str
    control_by: str
    control_at: datetime | None
    control_why: str

    @property
    def is_steered(self) -> bool:
        """Whether a control request for the worker is in effect."""
        return self.control != Control.GO or bool(self.pinned_to)

    @property
    def device_groups(self) -> tuple[DeviceGroup, ...]:
        """Its devices by name, in the worker's order."""
        ids: dict[str, list[str]] = {}
        for device in self.devices:
            name = "CPU emulation" if device.get("emulated") else device["name"]
            ids.setdefault(name, []).append(device["id"])
        return tuple(DeviceGroup(name, tuple(devices)) for name, devices in ids.items())


def worker_rows() -> tuple[WorkerRow, ...]:
    """Return workers, live ones first (1 query)."""
    rows = [
        build_row(
            WorkerRow,
            worker,
            id=worker.pk,
            alive=worker.is_alive,
            queues=tuple(worker.queues),
            devices=tuple(worker.devices),
            absent=tuple(worker.absent),
            toolchains=tuple(worker.toolchains),
            fence=tuple(worker.fence),
            repositories=tuple(row["name"] for row in worker.repositories),
            control_label=Control(worker.control).label,
            control_by=worker.control_by.get_username() if worker.control_by else "",
        )
        for worker in Worker.objects.select_related("control_by").order_by("-seen_at")[:50]
    ]
    return tuple(sorted(rows, key=lambda row: (not row.alive, row.name)))
