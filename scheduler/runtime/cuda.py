"""NVIDIA GPUs through cuda-bindings, the driver API.

The bindings are the extra ``nvidia``; they can be imported without a driver, and the first call
then fails. All calls go through ``_call``, which converts this error, and every status other than
success, into a ``DeviceError`` with the driver's name of the error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from scheduler.build.cutedsl.toolchains import EXTRA, RUNTIME, runtime_library
from scheduler.runtime.device import AbsentDevice, DeviceError, DeviceInfo, DeviceProvider
from scheduler.runtime.gpu import GpuDevice
from scheduler.runtime.library import Library
from scheduler.runtime.nvml import Monitor
from scheduler.targets.generations import NVIDIA_TARGETS, target_for
from scheduler.targets.nvidia import processor_name

KIND = "cuda"
_DRIVER_LIBRARY = "libcuda.so.1"
# Functions whose names differ from HIP's by more than the prefix.
_CUDA_NAMES = {"Malloc": "MemAlloc", "Free": "MemFree", "MemsetAsync": "MemsetD8Async"}
_OPEN_FAILED = "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"
# Remedies for statuses whose text does not name one.
_REMEDIES = {
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "the driver is older than the PTX: update it, or install ptxas (pip install 'kiln[nvidia]')"
    ),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "build the kernel for the target that the device list names",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": (
        "the driver and its library have different versions: restart, or reinstall the driver"
    ),
}
_MISSING_PACKAGE = "the Python package cuda-bindings is not installed: pip install 'kiln[nvidia]'"


class CudaDevice(GpuDevice):
    """One GPU through the driver API, in its primary context; after a fault no call in this process
    succeeds."""

    no_symbol = "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"
    event_flags = (0,)

    def __init__(self, index: int) -> None:
        driver = _driver()
        _call(driver.cuInit, 0)
        self._device = _call(driver.cuDeviceGet, index)
        info = device_info(index)
        self._context = _call(driver.cuDevicePrimaryCtxRetain, self._device)
        self.make_current()
        stream = _call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        super().__init__(info, stream, _raise_for)
        # Kernels' libraries find the driver's functions among the process's symbols.
        self._symbols = ctypes.CDLL(_DRIVER_LIBRARY, ctypes.RTLD_GLOBAL)
        self._monitor = Monitor(info.attributes["pci"])

    def call(self, name: str, *args: Any) -> Any:
        return _call(getattr(_driver(), f"cu{_CUDA_NAMES.get(name, name)}"), *args)

    def make_current(self) -> None:
        _call(_driver().cuCtxSetCurrent, self._context)

    def open_library(self, library: Path) -> Library:
        return open_library(library)

    def copy_to_device(self, pointer: int, address: int, nbytes: int) -> None:
        _call(_driver().cuMemcpyHtoD, pointer, address, nbytes)

    def copy_to_host(self, address: int, pointer: int, nbytes: int) -> None:
        _call(_driver().cuMemcpyDtoH, address, pointer, nbytes)

    def readings(self) -> Mapping[str, float]:
        """Return clocks and throttling."""
        return self._monitor.read()

    def close(self) -> None:
        super().close()
        self._monitor.close()
        _call(_driver().cuDevicePrimaryCtxRelease, self._device)


class CudaDevices:
    """The GPUs that the driver finds, by index."""

    def probe(self) -> tuple[DeviceInfo | AbsentDevice, ...]:
        """Return all GPUs, or why there is none, in one line."""
        try:
            driver = _driver()
            _call(driver.cuInit, 0)
            count = _call(driver.cuDeviceGetCount)
        except DeviceError as error:
            return (AbsentDevice(KIND, error.message),)
        devices: list[DeviceInfo | AbsentDevice] = []
        for index in range(count):
            try:
                devices.append(device_info(index))
            except DeviceError as error:  # does not affect the others
                devices.append(AbsentDevice(KIND, error.message))
        return tuple(devices)

    def open(self, device_id: str, threads: int | None) -> CudaDevice:  # noqa: ARG002 - of the host
        """Open ``cuda:0`` and so on."""
        return CudaDevice(int(device_id.removeprefix(f"{KIND}:")))


DEVICES: DeviceProvider = CudaDevices()


def device_info(index: int) -> DeviceInfo:
    """Return the driver's description of a GPU. Raises ``DeviceError`` if the index is invalid or
    no target supports the GPU."""
    driver = _driver()
    device = _call(driver.cuDeviceGet, index)

    def attribute(name: str) -> int:
        kind = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(_call(driver.cuDeviceGetAttribute, kind, device))

    capability = 10 * attribute("COMPUTE_CAPABILITY_MAJOR") + attribute("COMPUTE_CAPABILITY_MINOR")
    name = _text(_call(driver.cuDeviceGetName, 256, device))
    target = target_for(capability)
    if target is None:
        target_names = ", ".join(target_row.name for target_row in NVIDIA_TARGETS)
        message = (
            f"{KIND}:{index} ({name}) is {processor_name(capability)}, not one of {target_names}"
        )
        raise DeviceError("CUDA_ERROR_NO_BINARY_FOR_GPU", message)
    version_number = _call(driver.cuDriverGetVersion)  # major * 1000 + minor * 10
    version = f"{version_number // 1000}.{version_number % 1000 // 10}"
    pci = (
        f"{attribute('PCI_DOMAIN_ID'):04x}:{attribute('PCI_BUS_ID'):02x}"
        f":{attribute('PCI_DEVICE_ID'):02x}.0"
    )
    monitor = Monitor(pci)
    monitor.read()  # what NVML does not read is reported once, here, and not at each sample
    driver_version = monitor.driver()
    monitor.close()
    readings = f"none: {monitor.absence}" if monitor.absence else "clocks and throttling, by NVML"
    return DeviceInfo(
        id=f"{KIND}:{index}",
        target=target.name,
        name=name,
        driver=f"NVIDIA {driver_version}" if driver_version else f"CUDA driver {version}",
        runtime=f"CUDA {version}",
        compute_units=attribute("MULTIPROCESSOR_COUNT"),
        memory_bytes=int(_call(driver.cuDeviceTotalMem, device)),
        emulated=False,
        attributes={
            "architecture": processor_name(capability),
            "wavefront": str(attribute("WARP_SIZE")),
            "clock_khz": str(attribute("CLOCK_RATE")),
            "memory_clock_khz": str(attribute("MEMORY_CLOCK_RATE")),
            "memory_bus_bits": str(attribute("GLOBAL_MEMORY_BUS_WIDTH")),
            "l2_bytes": str(attribute("L2_CACHE_SIZE")),
            "lds_bytes_per_block": str(attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")),
            "pci": pci,
            "target": target.name,
            "readings": readings,
        },
    )


@cache
def _driver() -> Any:
    """Return NVIDIA's bindings. Raises ``DeviceError`` if the package is missing."""
    try:
        from cuda.bindings import driver  # noqa: PLC0415 - an extra
    except ImportError:
        raise DeviceError("CUDA_ERROR_NOT_FOUND", _MISSING_PACKAGE) from None
    return driver


def _call(function: Callable[..., Any], *args: Any) -> Any:
    """Call the driver. Returns the result without the status, or None."""
    try:
        status, *values = function(*args)
    except RuntimeError as error:
        message = f"NVIDIA's driver is not installed, or not usable: {error}"
        raise DeviceError("CUDA_ERROR_NO_DEVICE", message) from None
    except ValueError as error:
        # The bindings do not know a status of a newer driver.
        raise DeviceError("CUDA_ERROR_UNKNOWN", str(error)) from None
    _raise_for_status(status)
    return values[0] if values else None


def open_library(library: Path) -> Library:
    """Open a kernel's library, and CuteDSL's runtime if the library needs it."""
    try:
        return Library(library, _OPEN_FAILED)
    except DeviceError as error:
        if RUNTIME not in str(error):
            raise
    runtime = runtime_library()
    if runtime is None:
        raise DeviceError(_OPEN_FAILED, f"a CuteDSL kernel needs {RUNTIME}: {EXTRA}")
    Library(runtime, _OPEN_FAILED)  # stays loaded: libraries find it by name
    return Library(library, _OPEN_FAILED)


def _raise_for(code: int) -> None:
    """Check the return value of a kernel's function: 0, or the driver's status as a number."""
    if code == 0:
        return
    try:
        status = _driver().CUresult(code)
    except ValueError:
        message = f"the kernel's function returned {code}"
        raise DeviceError("CUDA_ERROR_UNKNOWN", message) from None
    _raise_for_status(status)


def _raise_for_status(status: Any) -> None:
    driver = _driver()
    if status != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(status)
        message = _text(text).rstrip(".") if text else status.name
        remedy = _REMEDIES.get(status.name)
        raise DeviceError(status.name, f"{message}; {remedy}" if remedy else message)


def _text(value: bytes | str) -> str:
    text = value if isinstance(value, str) else bytes(value).decode(errors="replace")
    return text.partition("\0")[0]
