"""What an NVIDIA GPU says of itself while it works, through NVML: clocks, and what held them down.

Recorded with each sample, so that a slow one can be told from a throttled one.
"""

from __future__ import annotations

from typing import Any

# Reasons that cost time, as NVML's bits name them (nvml.h, nvmlClocksEventReasons).
_REASONS = {
    "throttled_power": 0x4 | 0x80,  # the board's power limit; a power brake
    "throttled_thermal": 0x20 | 0x40,  # by software or hardware, for its temperature
    "throttled_hardware": 0x8,
}


class Monitor:
    """Reads one GPU; ``read`` gives {} where NVML, or the GPU's part of it, is not there, and
    ``absence`` then says why in one line."""

    def __init__(self, pci: str) -> None:
        self._nvml = _library()
        self._handle: Any = None
        self.absence = "" if self._nvml else "the Python package cuda-bindings has no NVML"
        if self._nvml is None:
            return
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
        """Clocks in MHz, and for each kind of throttling whether it holds now (0 or 1)."""
        if self._handle is None:
            return {}
        nvml = self._nvml
        try:
            found = {
                "sm_clock_mhz": float(
                    nvml.device_get_clock_info(self._handle, nvml.ClockType.CLOCK_SM)
                ),
                "memory_clock_mhz": float(
                    nvml.device_get_clock_info(self._handle, nvml.ClockType.CLOCK_MEM)
                ),
            }
            now = int(nvml.device_get_current_clocks_event_reasons(self._handle))
        except self._errors() as error:
            self.absence = f"NVML does not read this GPU: {error}"
            return {}
        return found | {name: float(bool(now & bits)) for name, bits in _REASONS.items()}

    def driver(self) -> str:
        """The driver's version (580.159.04); "" where NVML does not say it."""
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


def _library() -> Any:
    try:
        from cuda.bindings import nvml  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    return nvml
