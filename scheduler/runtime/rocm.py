"""ROCm GPUs through hip-python. No other module imports hip-python.

hip-python can be imported without ROCm: it opens libamdhip64.so at the first call, which then
raises ``RuntimeError``. All calls go through ``_call``, which converts this error, and every status
other than success, into a ``DeviceError`` with HIP's name of the error.
"""

from __future__ import annotations

import ctypes
import grp
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hip import hip
from rocm.bindings.util.paths import get_library_path

from scheduler.runtime.device import (
    AbsentDevice,
    DeviceError,
    DeviceInfo,
    DeviceProvider,
    LoadedKernel,
    Timing,
)
from scheduler.runtime.library import ExportedKernel, Library, bind_launch

KIND = "rocm"
_DRIVER = Path("/dev/kfd")
_DRIVER_VERSION = Path("/sys/module/amdgpu/version")


class RocmDevice:
    """One GPU with one stream. A later call may report the error of a launch."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._info = device_info(index)
        self._make_current()
        self._stream = _call(hip.hipStreamCreate)
        # The same library that hip-python opened: kernels' libraries find its symbols there.
        self._runtime = ctypes.CDLL(get_library_path("amdhip64").decode(), ctypes.RTLD_GLOBAL)
        self._libraries: list[Library] = []
        self._blocks: set[int] = set()

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory; HIP aligns it to at least 256 bytes. 0 bytes gives 0."""
        if nbytes < 0:
            raise ValueError(f"{nbytes} bytes cannot be allocated")
        if nbytes == 0:
            return 0
        self._make_current()
        pointer = int(_call(hip.hipMalloc, nbytes))
        self._blocks.add(pointer)
        return pointer

    def free(self, pointer: int) -> None:
        """Free memory; 0 is allowed."""
        if pointer == 0:
            return
        self._make_current()
        _call(hip.hipFree, pointer)
        self._blocks.discard(pointer)

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None:
        """Copy an array to the device, contiguously."""
        source = np.ascontiguousarray(data)
        self._copy(pointer, source.ctypes.data, source.nbytes, "hipMemcpyHostToDevice")

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None:
        """Copy device memory into a contiguous array, after all earlier launches."""
        if not out.flags.c_contiguous:
            raise ValueError("memory is read into contiguous arrays only")
        self._copy(out.ctypes.data, pointer, out.nbytes, "hipMemcpyDeviceToHost")

    def fill(self, pointer: int, byte: int, nbytes: int) -> None:
        if nbytes == 0:
            return
        self._make_current()
        _call(hip.hipMemsetAsync, pointer, byte, nbytes, self._stream)
        self.synchronize()

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Open a library that was built for this device's target, and find its function."""
        self._make_current()
        opened = Library(library)
        try:
            function = opened.function(symbol)
        except DeviceError:
            opened.close()
            raise
        self._libraries.append(opened)
        return ExportedKernel(function, arg_types, int(self._stream), _raise_for)

    def synchronize(self) -> None:
        """Wait for the stream. Raises ``DeviceError`` for an error of an earlier launch."""
        _call(hip.hipStreamSynchronize, self._stream)

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Return the time between two stream events around the launches."""
        ready = [bind_launch(*launch) for launch in launches]
        self._make_current()
        start, stop = _call(hip.hipEventCreate), _call(hip.hipEventCreate)
        try:
            _call(hip.hipEventRecord, start, self._stream)
            for launch in ready:
                launch()
            _call(hip.hipEventRecord, stop, self._stream)
            _call(hip.hipEventSynchronize, stop)
            milliseconds: float = _call(hip.hipEventElapsedTime, start, stop)
            return Timing(round(milliseconds * 1e6))
        finally:
            _call(hip.hipEventDestroy, start)
            _call(hip.hipEventDestroy, stop)

    def close(self) -> None:
        """Free all resources; no kernel of the device may be called afterwards."""
        self.synchronize()
        for library in self._libraries:
            library.close()
        self._libraries.clear()
        for pointer in tuple(self._blocks):
            self.free(pointer)
        _call(hip.hipStreamDestroy, self._stream)

    def _copy(self, to: int, source: int, nbytes: int, kind: str) -> None:
        if nbytes == 0:
            return
        self._make_current()
        direction = getattr(hip.hipMemcpyKind, kind)
        _call(hip.hipMemcpyAsync, to, source, nbytes, direction, self._stream)
        self.synchronize()

    def _make_current(self) -> None:
        """Make the device current: HIP keeps a current device per thread."""
        _call(hip.hipSetDevice, self._index)


class RocmDevices:
    """The GPUs that HIP finds, by index."""

    def probe(self) -> tuple[DeviceInfo | AbsentDevice, ...]:
        """Return all GPUs, or why there is none, in one line."""
        try:
            return tuple(device_info(index) for index in range(_call(hip.hipGetDeviceCount)))
        except DeviceError as error:
            return (AbsentDevice(KIND, absence_reason(error)),)

    def open(self, device_id: str, threads: int | None) -> RocmDevice:  # noqa: ARG002 - of the host
        """Open ``rocm:0`` and so on."""
        try:
            return RocmDevice(int(device_id.removeprefix(f"{KIND}:")))
        except DeviceError as error:
            raise DeviceError(error.status, absence_reason(error)) from None


DEVICES: DeviceProvider = RocmDevices()


def absence_reason(error: DeviceError, driver: Path = _DRIVER) -> str:
    """Return in one line why no GPU can be used, and what to do about it."""
    if error.status != "hipErrorNoDevice":
        return error.message
    if not driver.exists():
        return f"no AMD GPU: {driver} does not exist (is the amdgpu driver loaded?)"
    if not os.access(driver, os.R_OK | os.W_OK):
        owner = driver.stat().st_gid
        return f"no permission for {driver}: add this user to the group {_group(owner)}"
    return f"no GPU that ROCm supports ({error.status})"


def device_info(index: int) -> DeviceInfo:
    """Return HIP's description of a GPU. Raises ``DeviceError`` if the index is invalid."""
    properties = _call(hip.hipGetDeviceProperties, index)
    architecture = _text(properties.gcnArchName)
    return DeviceInfo(
        id=f"{KIND}:{index}",
        target=architecture.partition(":")[0],
        name=_text(properties.name),
        driver=_driver_version(),
        runtime=f"HIP {_version(_call(hip.hipRuntimeGetVersion))}",
        compute_units=properties.multiProcessorCount,
        memory_bytes=properties.totalGlobalMem,
        emulated=False,
        attributes={
            "architecture": architecture,
            "wavefront": str(properties.warpSize),
            "clock_khz": str(properties.clockRate),
            "memory_clock_khz": str(properties.memoryClockRate),
            "memory_bus_bits": str(properties.memoryBusWidth),
            "l2_bytes": str(properties.l2CacheSize),
            "lds_bytes_per_block": str(properties.sharedMemPerBlock),
            "pci": f"{properties.pciDomainID:04x}:{properties.pciBusID:02x}"
            f":{properties.pciDeviceID:02x}",
        },
    )


def _call(function: Callable[..., Any], *args: Any) -> Any:
    """Call HIP. Returns the result without the status, or None."""
    try:
        status, *values = function(*args)
    except RuntimeError as error:
        # Raised by hip-python: the library, or a function in it, is missing.
        message = f"ROCm's runtime is not installed, or not usable: {_cause(error)}"
        raise DeviceError("hipErrorSharedObjectInitFailed", message) from None
    except ValueError as error:
        # hip-python does not know a status of a newer runtime.
        raise DeviceError("hipErrorUnknown", str(error)) from None
    _raise_for_status(status)
    return values[0] if values else None


def _raise_for(code: int) -> None:
    """Check the return value of a kernel's function: 0, or HIP's status as a number."""
    if code == 0:
        return
    try:
        status = hip.hipError_t(code)
    except ValueError:
        raise DeviceError("hipErrorUnknown", f"the kernel's function returned {code}") from None
    _raise_for_status(status)


def _raise_for_status(status: Any) -> None:
    if status != hip.hipError_t.hipSuccess:
        _, text = hip.hipGetErrorString(status)  # type: ignore[no-untyped-call]
        raise DeviceError(status.name, _text(text))


def _cause(error: RuntimeError) -> str:
    """Return the loader's message, which hip-python embeds in its own as the repr of bytes."""
    found = re.search(r"failed to dlopen .*?: b?'(.*)'$", str(error))
    return found[1] if found else str(error)


def _text(value: Any) -> str:
    """Decode text of hip-python: str for a structure's field, bytes-like for a C string."""
    return value if isinstance(value, str) else bytes(value).decode(errors="replace")


def _version(number: int) -> str:
    """Format HIP's version number: major * 10000000 + minor * 100000 + patch."""
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


def _driver_version() -> str:
    try:
        return f"amdgpu {_DRIVER_VERSION.read_text().strip()}"
    except OSError:
        # The driver that ships with the kernel has no separate version.
        return f"amdgpu of {os.uname().sysname} {os.uname().release}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
