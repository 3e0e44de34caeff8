"""The devices of this host: finding the device of a run, and locking it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.conf import settings

from codegen_app.tuning.models import TuningRun
from scheduler.errors import Rejected, Stage
from scheduler.runtime.device import AbsentDevice, DeviceInfo
from scheduler.runtime.devices import modelled_device, probe
from scheduler.runtime.lock import DeviceBusy, lock_device

_POLL_S = 0.2


@contextmanager
def hold_device(run: TuningRun, over: threading.Event) -> Iterator[DeviceInfo | Rejected | None]:
    """Lock the run's device, or a free one of the same model, for this process.

    Waits while all are in use, until ``over``, which yields None. Yields ``Rejected`` if this host
    has no such device.
    """
    if run.is_modelled:  # nothing runs on it: other uses do not disturb it
        yield modelled_device(run.device)
        return
    found = probe()
    here = [one for one in found if isinstance(one, DeviceInfo)]
    own = next((one for one in here if one.id == run.device), None)
    if own is None:
        yield _absence(run.device, [one for one in found if isinstance(one, AbsentDevice)])
        return
    alike = [own, *(one for one in here if one != own and _kind(one) == _kind(own))]
    with ExitStack() as stack:
        yield _first_free(alike, stack, over)


def local_models() -> set[tuple[str, str]]:
    """Return the target and the model of each device of this host."""
    return {_kind(one) for one in probe() if isinstance(one, DeviceInfo)}


@contextmanager
def hold_device_of_model(
    target: str, name: str, over: threading.Event
) -> Iterator[DeviceInfo | None]:
    """Lock a device of that model for this process; waits as ``hold_device`` does. Yields None if
    this host has none any more, or once ``over`` is set."""
    here = [one for one in probe() if isinstance(one, DeviceInfo)]
    alike = [one for one in here if _kind(one) == (target, name)]
    with ExitStack() as stack:
        yield _first_free(alike, stack, over) if alike else None


def _first_free(
    devices: list[DeviceInfo], stack: ExitStack, over: threading.Event
) -> DeviceInfo | None:
    while True:
        for device in devices:
            try:
                stack.enter_context(lock_device(device.id, settings.DEVICE_LOCKS_DIR, wait=False))
            except DeviceBusy:
                continue
            return device
        if over.wait(_POLL_S):
            return None


def _kind(device: DeviceInfo) -> tuple[str, str]:
    return device.target, device.name


def _absence(device_id: str, absent: list[AbsentDevice]) -> Rejected:
    kind = device_id.partition(":")[0]
    why = next((one.reason for one in absent if one.kind == kind), "no such device here")
    return Rejected(Stage.LOAD, f"device {device_id}: {why}")
