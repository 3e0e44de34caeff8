"""The devices of this host: finding the device of a run, and locking it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from django.conf import settings

from codegen_app.tuning.models import TuningRun
from scheduler.errors import Rejected, Stage
from scheduler.runtime.device import AbsentDevice, DeviceInfo
from scheduler.runtime.devices import modelled_device, probe_devices
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
    probed = probe_devices()
    devices = [device for device in probed if isinstance(device, DeviceInfo)]
    requested = next((device for device in devices if device.id == run.device), None)
    if requested is None:
        kind = run.device.partition(":")[0]
        absent = (device for device in probed if isinstance(device, AbsentDevice))
        reasons = (device.reason for device in absent if device.kind == kind)
        reason = next(reasons, "no such device here")
        yield Rejected(Stage.LOAD, f"device {run.device}: {reason}")
        return
    others = (device for device in devices if device != requested)
    same_kind = [requested, *(device for device in others if _kind(device) == _kind(requested))]
    with ExitStack() as stack:
        yield _first_free(same_kind, stack, over)


def local_models() -> set[tuple[str, str]]:
    """Return the target and the model of each device of this host."""
    return {_kind(device) for device in probe_devices() if isinstance(device, DeviceInfo)}


@contextmanager
def hold_device_of_model(
    target: str, name: str, over: threading.Event
) -> Iterator[DeviceInfo | None]:
    """Lock a device of that model for this process; waits as ``hold_device`` does. Yields None if
    this host has none any more, or once ``over`` is set."""
    devices = [device for device in probe_devices() if isinstance(device, DeviceInfo)]
    alike = [device for device in devices if _kind(device) == (target, name)]
    with ExitStack() as stack:
        yield _first_free(alike, stack, over) if alike else None


@contextmanager
def reserve_device(device: str, over: threading.Event) -> Iterator[bool]:
    """Lock a device by its id, for a program that uses it by its own means; waits as
    ``hold_device`` does. Yields False once ``over`` is set."""
    with ExitStack() as stack:
        yield _wait_for_lock((device,), stack, over) is not None


def _first_free(
    devices: list[DeviceInfo], stack: ExitStack, over: threading.Event
) -> DeviceInfo | None:
    by_id = {device.id: device for device in devices}
    locked = _wait_for_lock(by_id, stack, over)
    return by_id[locked] if locked is not None else None


def _wait_for_lock(devices: Collection[str], stack: ExitStack, over: threading.Event) -> str | None:
    while True:
        for device in devices:
            try:
                stack.enter_context(lock_device(device, settings.DEVICE_LOCKS_DIR, wait=False))
            except DeviceBusy:
                continue
            return device
        if over.wait(_POLL_S):
            return None


def _kind(device: DeviceInfo) -> tuple[str, str]:
    return device.target, device.name
