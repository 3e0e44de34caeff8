"""NVIDIA GPUs through cuda-bindings, the driver API.

The bindings are the extra ``nvidia``; they can be imported without a driver, and the first call
then fails. All calls go through ``_call``, which converts this error, and every status other than
success, into a ``DeviceError`` with the driver's name of the error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.build.cutedsl.toolchains import EXTRA, RUNTIME, runtime_library
from scheduler.runtime.device import (
    AbsentDevice,
    DeviceError,
    DeviceInfo,
    DeviceProvider,
    LoadedKernel,
    Timing,
)
from scheduler.runtime.library import ExportedKernel, Library, bind_launch
from scheduler.runtime.nvml import Monitor
from scheduler.targets.generations import NVIDIA_TARGETS, target_for
from scheduler.targets.nvidia import processor_name

KIND = "cuda"
_DRIVER = "libcuda.so.1"
_NOT_OPENED = "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"
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
_EXTRA = "the Python package cuda-bindings is not installed: pip install 'kiln[nvidia]'"


class CudaDevice:
    """One GPU with one stream, in its primary context. A later call may report the error of a
    launch; after a fault no call in this process succeeds."""

    def __init__(self, index: int) -> None:
        driver = _driver()
        _call(driver.cuInit, 0)
        self._device = _call(driver.cuDeviceGet, index)
        self._info = device_info(index)
        self._context = _call(driver.cuDevicePrimaryCtxRetain, self._device)
        self._make_current()
        self._stream = _call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        # Kernels' libraries find the driver's functions among the process's symbols.
        self._symbols = ctypes.CDLL(_DRIVER, ctypes.RTLD_GLOBAL)
        self._monitor = Monitor(self._info.attributes["pci"])
        self._libraries: list[Library] = []
        self._blocks: set[int] = set()

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory; CUDA aligns it to at least 256 bytes. 0 bytes gives 0."""
        if nbytes < 0:
            raise ValueError(f"{nbytes} bytes cannot be allocated")
        if nbytes == 0:
            return 0
        self._make_current()
        pointer = int(_call(_driver().cuMemAlloc, nbytes))
        self._blocks.add(pointer)
        return pointer

    def free(self, pointer: int) -> None:
        """Free memory; 0 is allowed."""
        if pointer == 0:
            return
        self._make_current()
        _call(_driver().cuMemFree, pointer)
        self._blocks.discard(pointer)

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None:
        """Copy an array to the device, contiguously."""
        source = np.ascontiguousarray(data)
        if source.nbytes:
            self._make_current()
            _call(_driver().cuMemcpyHtoD, pointer, source.ctypes.data, source.nbytes)

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None:
        """Copy device memory into a contiguous array, after all earlier launches."""
        if not out.flags.c_contiguous:
            raise ValueError("memory is read into contiguous arrays only")
        self.synchronize()
        if out.nbytes:
            _call(_driver().cuMemcpyDtoH, out.ctypes.data, pointer, out.nbytes)

    def fill(self, pointer: int, byte: int, nbytes: int) -> None:
        if nbytes == 0:
            return
        self._make_current()
        _call(_driver().cuMemsetD8Async, pointer, byte, nbytes, self._stream)
        self.synchronize()

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Open a library that was built for this device's target, and find its function."""
        self._make_current()
        opened = open_library(library)
        try:
            function = opened.function(symbol, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND")
        except DeviceError:
            opened.close()
            raise
        self._libraries.append(opened)
        return ExportedKernel(function, arg_types, int(self._stream), _raise_for)

    def synchronize(self) -> None:
        """Wait for the stream. Raises ``DeviceError`` for an error of an earlier launch."""
        self._make_current()
        _call(_driver().cuStreamSynchronize, self._stream)

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Return the time between two stream events around the launches; clocks and throttling are
        read right after."""
        ready = [bind_launch(*launch) for launch in launches]
        driver = _driver()
        self._make_current()
        start, stop = (_call(driver.cuEventCreate, 0) for _ in range(2))
        try:
            _call(driver.cuEventRecord, start, self._stream)
            for launch in ready:
                launch()
            _call(driver.cuEventRecord, stop, self._stream)
            _call(driver.cuEventSynchronize, stop)
            milliseconds: float = _call(driver.cuEventElapsedTime, start, stop)
            return Timing(round(milliseconds * 1e6), self._monitor.read())
        finally:
            _call(driver.cuEventDestroy, start)
            _call(driver.cuEventDestroy, stop)

    def close(self) -> None:
        """Free all resources; no kernel of the device may be called afterwards."""
        self.synchronize()
        self._monitor.close()
        for library in self._libraries:
            library.close()
        self._libraries.clear()
        for pointer in tuple(self._blocks):
            self.free(pointer)
        _call(_driver().cuStreamDestroy, self._stream)
        _call(_driver().cuDevicePrimaryCtxRelease, self._device)

    def _make_current(self) -> None:
        """Make the context current: the driver keeps a current context per thread."""
        _call(_driver().cuCtxSetCurrent, self._context)


class CudaDevices:
    """The GPUs that the driver finds, by index."""

    def probe(self) -> tuple[DeviceInfo | AbsentDevice, ...]:
        """Return all GPUs, or why there is none, in one line."""
        try:
            driver = _driver()
            _call(driver.cuInit, 0)
            return tuple(_probe_device(index) for index in range(_call(driver.cuDeviceGetCount)))
        except DeviceError as error:
            return (AbsentDevice(KIND, error.message),)

    def open(self, device_id: str, threads: int | None) -> CudaDevice:  # noqa: ARG002 - of the host
        """Open ``cuda:0`` and so on."""
        return CudaDevice(int(device_id.removeprefix(f"{KIND}:")))


DEVICES: DeviceProvider = CudaDevices()


def _probe_device(index: int) -> DeviceInfo | AbsentDevice:
    """Describe a GPU; one that cannot be used does not affect the others."""
    try:
        return device_info(index)
    except DeviceError as error:
        return AbsentDevice(KIND, error.message)


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
        known = ", ".join(one.name for one in NVIDIA_TARGETS)
        message = f"{KIND}:{index} ({name}) is {processor_name(capability)}, not one of {known}"
        raise DeviceError("CUDA_ERROR_NO_BINARY_FOR_GPU", message)
    version = _version(_call(driver.cuDriverGetVersion))
    pci = (
        f"{attribute('PCI_DOMAIN_ID'):04x}:{attribute('PCI_BUS_ID'):02x}"
        f":{attribute('PCI_DEVICE_ID'):02x}.0"
    )
    driver_version, readings = _nvml_state(pci)
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


def _nvml_state(pci: str) -> tuple[str, str]:
    """Return the driver's version ("" if unknown), and what is recorded with each sample or why
    nothing is: reported once here, not at each sample."""
    monitor = Monitor(pci)
    monitor.read()
    driver = monitor.driver()
    monitor.close()
    return (
        driver,
        f"none: {monitor.absence}" if monitor.absence else "clocks and throttling, by NVML",
    )


@cache
def _driver() -> Any:
    """Return NVIDIA's bindings. Raises ``DeviceError`` if the package is missing."""
    try:
        from cuda.bindings import driver  # noqa: PLC0415 - an extra
    except ImportError:
        raise DeviceError("CUDA_ERROR_NOT_FOUND", _EXTRA) from None
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
        return Library(library, _NOT_OPENED)
    except DeviceError as error:
        if RUNTIME not in str(error):
            raise
    runtime = runtime_library()
    if runtime is None:
        raise DeviceError(_NOT_OPENED, f"a CuteDSL kernel needs {RUNTIME}: {EXTRA}")
    Library(runtime, _NOT_OPENED)  # stays loaded: libraries find it by name
    return Library(library, _NOT_OPENED)


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


def _version(number: int) -> str:
    """Format CUDA's version number: major * 1000 + minor * 10."""
    return f"{number // 1000}.{number % 1000 // 10}"
