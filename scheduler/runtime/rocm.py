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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hip import hip
from rocm.bindings.util.paths import get_library_path

from scheduler.runtime.device import AbsentDevice, DeviceError, DeviceInfo, DeviceProvider
from scheduler.runtime.gpu import GpuDevice
from scheduler.runtime.library import Library

KIND = "rocm"
_DRIVER = Path("/dev/kfd")
_DRIVER_VERSION = Path("/sys/module/amdgpu/version")


class RocmDevice(GpuDevice):
    """One GPU through HIP."""

    no_symbol = "hipErrorSharedObjectSymbolNotFound"

    def __init__(self, index: int) -> None:
        self._index = index
        info = device_info(index)
        self.make_current()
        super().__init__(info, _call(hip.hipStreamCreate), _raise_for)
        # The same library that hip-python opened: kernels' libraries find its symbols there.
        self._runtime = ctypes.CDLL(get_library_path("amdhip64").decode(), ctypes.RTLD_GLOBAL)

    def call(self, name: str, *args: Any) -> Any:
        return _call(getattr(hip, f"hip{name}"), *args)

    def make_current(self) -> None:
        _call(hip.hipSetDevice, self._index)

    def open_library(self, library: Path) -> Library:
        return Library(library)

    def copy_to_device(self, pointer: int, address: int, nbytes: int) -> None:
        direction = hip.hipMemcpyKind.hipMemcpyHostToDevice
        _call(hip.hipMemcpyAsync, pointer, address, nbytes, direction, self._stream)
        self.synchronize()

    def copy_to_host(self, address: int, pointer: int, nbytes: int) -> None:
        direction = hip.hipMemcpyKind.hipMemcpyDeviceToHost
        _call(hip.hipMemcpyAsync, address, pointer, nbytes, direction, self._stream)
        self.synchronize()


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
        group = str(driver.stat().st_gid)
        with suppress(KeyError):
            group = grp.getgrgid(int(group)).gr_name
        return f"no permission for {driver}: add this user to the group {group}"
    return f"no GPU that ROCm supports ({error.status})"


def device_info(index: int) -> DeviceInfo:
    """Return HIP's description of a GPU. Raises ``DeviceError`` if the index is invalid."""
    properties = _call(hip.hipGetDeviceProperties, index)
    architecture = _text(properties.gcnArchName)
    # major * 10000000 + minor * 100000 + patch
    version = _call(hip.hipRuntimeGetVersion)
    major, minor, patch = version // 10_000_000, version // 100_000 % 100, version % 100_000
    # The driver that ships with the kernel has no separate version.
    driver = f"amdgpu of {os.uname().sysname} {os.uname().release}"
    with suppress(OSError):
        driver = f"amdgpu {_DRIVER_VERSION.read_text().strip()}"
    return DeviceInfo(
        id=f"{KIND}:{index}",
        target=architecture.partition(":")[0],
        name=_text(properties.name),
        driver=driver,
        runtime=f"HIP {major}.{minor}.{patch}",
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
        # Raised by hip-python: the library, or a function in it, is missing. It embeds the loader's
        # message in its own as the repr of bytes.
        loader_error = re.search(r"failed to dlopen .*?: b?'(.*)'$", str(error))
        cause = loader_error[1] if loader_error else str(error)
        message = f"ROCm's runtime is not installed, or not usable: {cause}"
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


def _text(value: Any) -> str:
    """Decode text of hip-python: str for a structure's field, bytes-like for a C string."""
    return value if isinstance(value, str) else bytes(value).decode(errors="replace")
