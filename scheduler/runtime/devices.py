"""Which devices there are here, and how to open one by its name."""

from __future__ import annotations

import re

from scheduler import targets
from scheduler.outcome import UserError
from scheduler.runtime import cpu
from scheduler.runtime.device import Absent, Device, DeviceError, DeviceInfo


def probe() -> tuple[DeviceInfo | Absent, ...]:
    """Every device that can be opened here, and each kind that cannot, with one line of why."""
    from scheduler.runtime import rocm  # noqa: PLC0415 - costs as much as all of the rest

    return (*rocm.probe(), *(cpu.device_info(target) for target in _emulated()))


def open_device(device_id: str, threads: int | None = None) -> Device:
    """The device of that id: ``cpu``, ``cpu-gfx1100`` ... or ``rocm:0``.

    ``threads`` is for CPU emulation: host threads, all cores where it is None. Raises
    ``UserError`` for a name that is not known, ``DeviceError`` where the device is not there.
    """
    for target in _emulated():
        if target.name == device_id:
            return cpu.CpuDevice(target, threads)
    if number := re.fullmatch(r"rocm:(\d{1,3})", device_id):
        return _open_rocm(int(number[1]))
    known = ", ".join(one.id for one in probe() if isinstance(one, DeviceInfo))
    raise UserError(f"device {device_id!r} is not known; there are here: {known}")


def _open_rocm(index: int) -> Device:
    from scheduler.runtime import rocm  # noqa: PLC0415 - as above

    try:
        return rocm.RocmDevice(index)
    except DeviceError as error:
        raise DeviceError(error.status, rocm.absence(error)) from None


def _emulated() -> tuple[targets.Target, ...]:
    found = (targets.find(name) for name in targets.names())
    return tuple(target for target in found if target.family == "cpu")
