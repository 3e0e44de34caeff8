"""The interface to devices that run kernels: AMD and NVIDIA GPUs, and emulation on the CPU.

A pointer is an int; memory is in bytes. A failure with a cause outside the program (no device, no
memory, a fault) raises ``DeviceError`` with the runtime's name of the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from scheduler.targets import Board, board_of
from scheduler.targets.modelled import is_modelled


class DeviceError(Exception):
    """A call of the device's runtime failed. ``status`` is the runtime's name of the error
    (hipErrorNoDevice), ``message`` a one-line description."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass(frozen=True)
class DeviceInfo:
    """The description of a device, stored in every recorded environment.

    ``id`` names it on the command line (``cpu``, ``rocm:0``, ``cuda:0``, ``model:MI300X``);
    ``target`` is what to compile for.
    """

    id: str
    target: str
    name: str
    driver: str
    runtime: str
    compute_units: int
    memory_bytes: int
    emulated: bool
    attributes: Mapping[str, str]

    @property
    def board(self) -> Board | None:
        """The device's board; None for an emulation, or if the board is not in the table."""
        return None if self.emulated else board_of(self.target, self.name)

    @property
    def modelled(self) -> bool:
        """Whether the device is a board with modelled times, on which nothing runs."""
        return is_modelled(self.id)

    @property
    def notes(self) -> tuple[str, ...]:
        """Deviations from the usual: code of another target, no readings."""
        return notes_of(self.target, self.attributes)


def notes_of(target: str, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return ``DeviceInfo.notes`` from a device's recorded attributes."""
    architecture, readings = attributes.get("architecture", ""), attributes.get("readings", "")
    runs_substitute = "target" in attributes and architecture != target
    return (
        *([f"{architecture}, which runs code for {target}"] if runs_substitute else ()),
        *([f"readings: {readings}"] if readings.startswith("none") else ()),
        *(["cannot run kernels"] if "modelled" in attributes else ()),
    )


@dataclass(frozen=True)
class AbsentDevice:
    """A kind of device that is not available, and why."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Timing:
    """The time of a batch of launches: total device nanoseconds, and telemetry read meanwhile.

    The names of ``readings`` contain the unit (``clock_mhz``); metrics are computed from them.
    """

    total_ns: float
    readings: Mapping[str, float] = field(default_factory=dict)


class LoadedKernel(Protocol):
    """An exported function of a loaded library."""

    def workspace_bytes(self, args: Sequence[int | float]) -> int:
        """Bytes of workspace that a call with these arguments needs; launches nothing."""

    def __call__(self, args: Sequence[int | float], workspace: int = 0) -> None:
        """Launch on the device's stream. Raises ``DeviceError`` if the function returns non-0."""


class Device(Protocol):
    """One device, with one stream."""

    @property
    def info(self) -> DeviceInfo: ...

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory, at least 256-byte aligned; 0 bytes gives 0 (a null pointer)."""

    def free(self, pointer: int) -> None: ...

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None: ...

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None: ...

    def fill(self, pointer: int, byte: int, nbytes: int) -> None: ...

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Open a kernel's library and find its function. ``arg_types`` as in the manifest."""

    def synchronize(self) -> None: ...

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Return the device time of launches (kernel, args, workspace) back to back."""

    def close(self) -> None: ...


class DeviceProvider(Protocol):
    """The devices of one backend."""

    def probe(self) -> tuple[DeviceInfo | AbsentDevice, ...]:
        """Return the devices that can be opened here, or why there is none."""

    def open(self, device_id: str, threads: int | None) -> Device | None:
        """Open the device of that id; None for an id that no device of the backend can have.

        ``threads`` is the number of host threads of a device that runs on the host's cores. Raises
        ``DeviceError`` if the device is not available.
        """
