"""What GPUs of all vendors have in common: memory, kernels and timing on one stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.runtime.device import DeviceError, DeviceInfo, LoadedKernel, Timing
from scheduler.runtime.library import ExportedKernel, Library, bind_launch


class GpuDevice(ABC):
    """One GPU with one stream. A later call may report the error of a launch.

    ``raise_for`` checks the return value of a kernel's function: 0, or the runtime's status as a
    number.
    """

    #: The runtime's name of the error if a library does not export a function.
    no_symbol: str
    #: Arguments of the runtime's function that creates an event.
    event_flags: tuple[int, ...] = ()

    def __init__(self, info: DeviceInfo, stream: Any, raise_for: Callable[[int], None]) -> None:
        self._info = info
        self._stream = stream
        self._raise_for = raise_for
        self._libraries: list[Library] = []
        self._blocks: set[int] = set()

    @abstractmethod
    def call(self, name: str, *args: Any) -> Any:
        """Call a function of the runtime, named without its prefix: ``EventRecord``. Returns the
        result without the status, or None."""

    @abstractmethod
    def make_current(self) -> None:
        """Make the device current: a runtime keeps a current device per thread."""

    @abstractmethod
    def open_library(self, library: Path) -> Library:
        """Open a kernel's library."""

    @abstractmethod
    def copy_to_device(self, pointer: int, address: int, nbytes: int) -> None:
        """Copy from the host's memory."""

    @abstractmethod
    def copy_to_host(self, address: int, pointer: int, nbytes: int) -> None:
        """Copy to the host's memory, after all earlier launches."""

    def readings(self) -> Mapping[str, float]:
        """Return telemetry of the launches that were just timed."""
        return {}

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory; it is aligned to at least 256 bytes. 0 bytes gives 0."""
        if nbytes < 0:
            raise ValueError(f"{nbytes} bytes cannot be allocated")
        if nbytes == 0:
            return 0
        self.make_current()
        pointer = int(self.call("Malloc", nbytes))
        self._blocks.add(pointer)
        return pointer

    def free(self, pointer: int) -> None:
        """Free memory; 0 is allowed."""
        if pointer == 0:
            return
        self.make_current()
        self.call("Free", pointer)
        self._blocks.discard(pointer)

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None:
        """Copy an array to the device, contiguously."""
        source = np.ascontiguousarray(data)
        if source.nbytes:
            self.make_current()
            self.copy_to_device(pointer, source.ctypes.data, source.nbytes)

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None:
        """Copy device memory into a contiguous array, after all earlier launches."""
        if not out.flags.c_contiguous:
            raise ValueError("memory is read into contiguous arrays only")
        self.synchronize()
        if out.nbytes:
            self.copy_to_host(out.ctypes.data, pointer, out.nbytes)

    def fill(self, pointer: int, byte: int, nbytes: int) -> None:
        if nbytes == 0:
            return
        self.make_current()
        self.call("MemsetAsync", pointer, byte, nbytes, self._stream)
        self.synchronize()

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Open a library that was built for this device's target, and find its function."""
        self.make_current()
        opened_library = self.open_library(library)
        try:
            function = opened_library.function(symbol, self.no_symbol)
        except DeviceError:
            opened_library.close()
            raise
        self._libraries.append(opened_library)
        return ExportedKernel(function, arg_types, int(self._stream), self._raise_for)

    def synchronize(self) -> None:
        """Wait for the stream. Raises ``DeviceError`` for an error of an earlier launch."""
        self.make_current()
        self.call("StreamSynchronize", self._stream)

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Return the time between two stream events around the launches, and the readings right
        after them."""
        bound_launches = [bind_launch(*launch) for launch in launches]
        self.make_current()
        start, stop = (self.call("EventCreate", *self.event_flags) for _ in range(2))
        try:
            self.call("EventRecord", start, self._stream)
            for launch in bound_launches:
                launch()
            self.call("EventRecord", stop, self._stream)
            self.call("EventSynchronize", stop)
            milliseconds: float = self.call("EventElapsedTime", start, stop)
            return Timing(round(milliseconds * 1e6), self.readings())
        finally:
            self.call("EventDestroy", start)
            self.call("EventDestroy", stop)

    def close(self) -> None:
        """Free all resources; no kernel of the device may be called afterwards."""
        self.synchronize()
        for library in self._libraries:
            library.close()
        self._libraries.clear()
        for pointer in tuple(self._blocks):
            self.free(pointer)
        self.call("StreamDestroy", self._stream)
