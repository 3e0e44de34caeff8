"""This machine's first core as a device: memory of this process, calls that are done at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scheduler.runtime.device import Device, DeviceError, DeviceInfo, LoadedKernel, Timing
from scheduler.runtime.library import ExportedKernel, Library, elapsed_ns

_ALIGNMENT = 256
_INFO = DeviceInfo("tiny:0", "tiny", "One core", "none", "C", 1, 1 << 30, True, {})


def _raise_for(code: int) -> None:
    if code:
        raise DeviceError("tinyError", f"the kernel returned {code}")


class TinyDevice:
    """One of these machines."""

    info = _INFO

    def __init__(self) -> None:
        self._blocks: dict[int, ctypes.Array[ctypes.c_char]] = {}

    def allocate(self, nbytes: int) -> int:
        if nbytes == 0:
            return 0
        block = ctypes.create_string_buffer(nbytes + _ALIGNMENT)
        pointer = -(-ctypes.addressof(block) // _ALIGNMENT) * _ALIGNMENT
        self._blocks[pointer] = block
        return pointer

    def free(self, pointer: int) -> None:
        self._blocks.pop(pointer, None)

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None:
        source = np.ascontiguousarray(data)
        ctypes.memmove(pointer, source.ctypes.data, source.nbytes)

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None:
        ctypes.memmove(out.ctypes.data, pointer, out.nbytes)

    def fill(self, pointer: int, byte: int, nbytes: int) -> None:
        ctypes.memset(pointer, byte, nbytes)

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        return ExportedKernel(Library(library).function(symbol), arg_types, 0, _raise_for)

    def synchronize(self) -> None:
        """Calls are done when they return."""

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        return Timing(elapsed_ns(launches), {"launches": len(launches)})

    def close(self) -> None:
        self._blocks.clear()


class TinyDevices:
    """There is one."""

    def probe(self) -> tuple[DeviceInfo, ...]:
        return (_INFO,)

    def open(self, device_id: str, threads: int | None) -> Device | None:
        return TinyDevice() if device_id == _INFO.id else None


DEVICES = TinyDevices()
