"""CPU emulation: kernels built for a ``cpu`` target, run on this machine's cores.

Pointers are addresses in this process. As on a GPU, an invalid write of a kernel can crash the
process: untrusted kernels must run in a separate process.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scheduler.arithmetic import round_up
from scheduler.cpu_count import usable_cpus
from scheduler.runtime.device import (
    Device,
    DeviceError,
    DeviceInfo,
    DeviceProvider,
    LoadedKernel,
    Timing,
)
from scheduler.runtime.isa_device import is_emulated, open_isa_device
from scheduler.runtime.library import ExportedKernel, Library, elapsed_ns
from scheduler.targets import Target
from scheduler.targets.emulation import EMULATIONS

_ALIGNMENT = 256
# hipError_t values of the emulation's header.
_STATUS_NAMES = {
    1: "hipErrorInvalidValue",
    2: "hipErrorOutOfMemory",
    9: "hipErrorInvalidConfiguration",
    719: "hipErrorLaunchFailure",
}


class CpuDevice:
    """Emulates the target's GPU with ``threads`` host threads; results do not depend on their
    number. Launches are complete when the call returns."""

    def __init__(self, target: Target, threads: int | None = None) -> None:
        self._threads = threads or usable_cpus()
        self._info = device_info(target)
        self._blocks: dict[int, tuple[int, ctypes.Array[ctypes.c_char]]] = {}
        self._starts: list[int] = []
        self._libraries: list[Library] = []
        # Memory for the emulated threads' stacks, shared by all libraries of one layout.
        self._arenas: ctypes.Array[ctypes.c_char] | None = None

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def allocate(self, nbytes: int) -> int:
        """Allocate memory aligned to 256 bytes, with undefined content; 0 bytes gives 0."""
        if nbytes < 0:
            raise ValueError(f"{nbytes} bytes cannot be allocated")
        if nbytes == 0:
            return 0
        if nbytes > self._info.memory_bytes:
            raise DeviceError("hipErrorOutOfMemory", f"{nbytes} bytes exceed the memory")
        try:
            block = ctypes.create_string_buffer(nbytes + _ALIGNMENT)
        except MemoryError:
            raise DeviceError("hipErrorOutOfMemory", f"cannot allocate {nbytes} bytes") from None
        pointer = round_up(ctypes.addressof(block), _ALIGNMENT)
        self._blocks[pointer] = (nbytes, block)
        bisect.insort(self._starts, pointer)
        return pointer

    def free(self, pointer: int) -> None:
        """Free memory; 0 is allowed."""
        if pointer == 0:
            return
        if self._blocks.pop(pointer, None) is None:
            raise DeviceError("hipErrorInvalidValue", f"{pointer:#x} was not allocated here")
        self._starts.remove(pointer)

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None:
        """Copy an array to memory, contiguously."""
        source = np.ascontiguousarray(data)
        self._check(pointer, source.nbytes)
        ctypes.memmove(pointer, source.ctypes.data, source.nbytes)

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None:
        """Copy memory into a contiguous array."""
        if not out.flags.c_contiguous:
            raise ValueError("memory is read into contiguous arrays only")
        self._check(pointer, out.nbytes)
        ctypes.memmove(out.ctypes.data, pointer, out.nbytes)

    def fill(self, pointer: int, byte: int, nbytes: int) -> None:
        self._check(pointer, nbytes)
        ctypes.memset(pointer, byte, nbytes)

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Open a library that was built for this device's target, and find its function."""
        opened_library = Library(library)
        try:
            opened_library.function("kiln_cpu_set_threads")(ctypes.c_int(self._threads))
            if self._arenas is None:
                size = opened_library.function("kiln_cpu_arenas_bytes_1")
                size.restype = ctypes.c_size_t
                self._arenas = ctypes.create_string_buffer(size() + _ALIGNMENT)
            arenas = round_up(ctypes.addressof(self._arenas), _ALIGNMENT)
            opened_library.function("kiln_cpu_share_arenas_1")(ctypes.c_void_p(arenas))
            function = opened_library.function(symbol)
            raise_for = _status_checker(opened_library)
        except DeviceError:
            opened_library.close()
            raise
        self._libraries.append(opened_library)
        return ExportedKernel(function, arg_types, 0, raise_for)

    def synchronize(self) -> None:
        """Do nothing: launches are complete when they return."""

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Return the wall time of the launches."""
        return Timing(elapsed_ns(launches))

    def close(self) -> None:
        """Free all resources; no kernel of the device may be called afterwards."""
        if self._libraries and self._arenas is not None:
            self._libraries[0].function("kiln_cpu_unmap_arenas_1")()
        for library in self._libraries:
            library.close()
        self._libraries.clear()
        self._blocks.clear()
        self._starts.clear()

    def _check(self, pointer: int, nbytes: int) -> None:
        """Check the range of a copy: one outside an allocation would corrupt this process."""
        if nbytes == 0:
            return
        index = bisect.bisect_right(self._starts, pointer) - 1
        if index >= 0:
            start = self._starts[index]
            if pointer + nbytes <= start + self._blocks[start][0]:
                return
        message = f"{nbytes} bytes at {pointer:#x} are not within one allocation"
        raise DeviceError("hipErrorInvalidValue", message)


def device_info(target: Target) -> DeviceInfo:
    """Return the description of this machine as the emulated target."""
    return DeviceInfo(
        id=target.name,
        target=target.name,
        name=_processor(),
        driver=f"{platform.system()} {platform.release()}",
        runtime="Kiln CPU emulation",
        compute_units=usable_cpus(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        emulated=True,
        attributes={"emulates": target.emulates, "wavefront": str(target.wavefront)},
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # only the name is missing then
    return platform.machine()


def _status_checker(library: Library) -> Callable[[int], None]:
    """Return the check of a call's status, with the emulation's own error message."""
    message = library.function("kiln_cpu_message")
    message.restype = ctypes.c_char_p

    def raise_for(code: int) -> None:
        report = (message() or b"").decode(errors="replace")
        if code != 0 or report:
            status = _STATUS_NAMES.get(
                code, "hipErrorLaunchFailure" if report else "hipErrorUnknown"
            )
            raise DeviceError(status, report or f"the kernel's function returned {code}")

    return raise_for


class CpuDevices:
    """One device for each target that can be emulated, and instruction emulators, which run code
    built by compilers of other machines and are therefore opened by name only."""

    def probe(self) -> tuple[DeviceInfo, ...]:
        return tuple(device_info(target) for target in EMULATIONS)

    def open(self, device_id: str, threads: int | None) -> Device | None:
        if is_emulated(device_id):
            return open_isa_device(device_id)
        matching = (target for target in EMULATIONS if target.name == device_id)
        return next((CpuDevice(target, threads) for target in matching), None)


DEVICES: DeviceProvider = CpuDevices()
