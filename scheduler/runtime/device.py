"""The narrow interface to whatever runs kernels: AMD's and NVIDIA's GPUs, CPU emulation.

A pointer is an int; memory is in bytes. Everything that can fail for a reason outside the
program (no device, no memory, a fault) raises ``DeviceError`` with the runtime's own name.
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
    """A call of the device's runtime failed: ``status`` is its name for it (hipErrorNoDevice),
    ``message`` one line of what happened."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass(frozen=True)
class DeviceInfo:
    """What a device is: goes into every recorded environment.

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
        """The board that it is; None for the emulation, and for one that is not in the table."""
        return None if self.emulated else board_of(self.target, self.name)

    @property
    def modelled(self) -> bool:
        """Whether it is a board whose times are modelled: nothing runs on it."""
        return is_modelled(self.id)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of it is not as one expects: code of another target, no readings."""
        return notes_of(self.target, self.attributes)


def notes_of(target: str, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """``DeviceInfo.notes`` of a device whose attributes were recorded."""
    own, readings = attributes.get("architecture", ""), attributes.get("readings", "")
    stands_in = "target" in attributes and own != target
    return (
        *([f"{own}, which takes code for {target}"] if stands_in else ()),
        *([f"readings: {readings}"] if readings.startswith("none") else ()),
        *(["nothing runs on it"] if "modelled" in attributes else ()),
    )


@dataclass(frozen=True)
class AbsentDevice:
    """A kind of device that is not here, and why."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Timing:
    """A batch of launches: nanoseconds of the device in all, and whatever else it read of itself
    meanwhile, by name with the unit in it (``clock_mhz``); a metric makes a figure of that."""

    total_ns: float
    readings: Mapping[str, float] = field(default_factory=dict)


class LoadedKernel(Protocol):
    """An exported function, ready to be called."""

    def workspace_bytes(self, args: Sequence[int | float]) -> int:
        """Bytes of workspace that a call with these arguments needs; launches nothing."""

    def __call__(self, args: Sequence[int | float], workspace: int = 0) -> None:
        """Launch on the device's stream. Raises ``DeviceError`` when the function says non-0."""


class Device(Protocol):
    """One device, with one stream."""

    @property
    def info(self) -> DeviceInfo: ...

    def allocate(self, nbytes: int) -> int:
        """Device memory, at least 256-byte aligned; 0 bytes gives 0 (a null pointer)."""

    def free(self, pointer: int) -> None: ...

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None: ...

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None: ...

    def fill(self, pointer: int, byte: int, nbytes: int) -> None: ...

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Open a kernel's library and find its function. ``arg_types`` as in the manifest."""

    def synchronize(self) -> None: ...

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Device time of the launches (kernel, args, workspace) back to back."""

    def close(self) -> None: ...


class DeviceProvider(Protocol):
    """The devices of one backend."""

    def probe(self) -> tuple[DeviceInfo | AbsentDevice, ...]:
        """Those that can be opened here, or why there is none."""

    def open(self, device_id: str, threads: int | None) -> Device | None:
        """The device of that id; None for an id that no device of the backend can have.
        ``threads`` of the host are for devices that are its cores. Raises ``DeviceError`` where
        the device is not there."""
