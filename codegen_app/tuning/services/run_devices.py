"""Where runs can be measured or modelled: workers' devices, and boards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codegen_app.workers.models import Worker
from scheduler import targets
from scheduler.errors import UserError
from scheduler.runtime.devices import modelled_devices
from scheduler.targets.registry import backend_of


@dataclass(frozen=True)
class RunDevice:
    """A device of a target. ``alive``: a worker has it now, or it is modelled."""

    target: str
    device: str
    name: str
    alive: bool = True
    modelled: bool = False
    emulated: bool = False

    @property
    def key(self) -> str:
        """The device's value in a form."""
        return f"{self.target} {self.device}"

    @property
    def title(self) -> str:
        """The device's label in a form."""
        gone = "" if self.alive else "; offline"
        return f"{self.target} on {self.device}: {self.name}{gone}"


def list_run_devices() -> tuple[RunDevice, ...]:
    """Return every combination of target and device, the best to measure on first: GPUs of live
    workers, the CPU emulation, devices that workers had, modelled devices (1 query)."""
    by_key: dict[str, RunDevice] = {}
    for worker in Worker.objects.order_by("-seen_at"):
        for device in worker.devices:
            device_row = RunDevice(
                target=device["target"],
                device=device["id"],
                name=device["name"],
                alive=worker.is_alive,
                emulated=bool(device.get("emulated")) or device["target"] == "cpu",
            )
            known = by_key.get(device_row.key)
            if measures_times(device_row.target, device_row.device) and (
                known is None or device_row.alive > known.alive
            ):
                by_key[device_row.key] = device_row
    ordered = sorted(
        by_key.values(), key=lambda device: (not device.alive, device.emulated, device.key)
    )
    modelled = (
        RunDevice(device.target, device.id, device.name, modelled=True)
        for device in modelled_devices()
    )
    return (*ordered, *modelled)


def measures_times(target: str, device: str) -> bool:
    """Return whether times are measured on a device: not on modelled ones, and not on an emulator
    of a GPU's instructions, which has the GPU's target."""
    try:
        known_target = targets.find(target)
    except UserError:  # a worker of another version
        return False
    return re.fullmatch(backend_of(known_target).device_ids, device) is not None
