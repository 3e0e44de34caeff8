"""Telemetry of an NVIDIA GPU through NVML: clocks and reasons for throttling.

Recorded with each sample, to distinguish slow samples from throttled ones.
"""

from __future__ import annotations

from typing import Any

# NVML's bits of the reasons that reduce clocks (nvml.h, nvmlClocksEventReasons).
_REASON_BITS = {
    "throttled_power": 0x4 | 0x80,  # the board's power limit; a power brake
    "throttled_thermal": 0x20 | 0x40,  # by software or hardware, for its temperature
    "throttled_hardware": 0x8,
}


class Monitor:
    """Reads one GPU. If NVML or its support for the GPU is missing, ``read`` returns {} and
    ``absence`` is the reason in one line."""

    def __init__(self, pci: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        self.absence = ""
        try:
            from cuda.bindings import nvml  # noqa: PLC0415 - an extra
        except ImportError:
            self.absence = "the Python package cuda-bindings has no NVML"
            return
        self._nvml = nvml
        try:
            self._nvml.init_v2()
        except self._errors() as error:
            self.absence = f"NVML (libnvidia-ml.so.1) is not installed, or not usable: {error}"
            return
        try:
            self._handle = self._nvml.device_get_handle_by_pci_bus_id_v2(pci)
        except self._errors() as error:
            self.absence = f"NVML does not know the GPU at {pci}: {error}"
            self._nvml.shutdown()

    def read(self) -> dict[str, float]:
        """Return clocks in MHz, and whether each kind of throttling is active (0 or 1)."""
        if self._handle is None:
            return {}
        nvml = self._nvml
        try:
            clocks = {
                "sm_clock_mhz": float(
                    nvml.device_get_clock_info(self._handle, nvml.ClockType.CLOCK_SM)
                ),
                "memory_clock_mhz": float(
                    nvml.device_get_clock_info(self._handle, nvml.ClockType.CLOCK_MEM)
                ),
            }
            active_bits = int(nvml.device_get_current_clocks_event_reasons(self._handle))
        except self._errors() as error:
            self.absence = f"NVML does not read this GPU: {error}"
            return {}
        return clocks | {
            name: float(bool(active_bits & bits)) for name, bits in _REASON_BITS.items()
        }

    def driver(self) -> str:
        """Return the driver's version (580.159.04), or "" if NVML does not report it."""
        if self._handle is None:
            return ""
        try:
            return str(self._nvml.system_get_driver_version())
        except self._errors():
            return ""

    def close(self) -> None:
        if self._handle is not None:
            self._nvml.shutdown()
            self._handle = None

    def _errors(self) -> tuple[type[Exception], ...]:
        return (self._nvml.NvmlError, RuntimeError)
