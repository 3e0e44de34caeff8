"""Lists the available devices of all backends, and opens one by its id."""

from __future__ import annotations

import re

from scheduler.errors import UserError
from scheduler.runtime.device import AbsentDevice, Device, DeviceInfo, DeviceProvider
from scheduler.targets import Board, Target, emulation_of, find
from scheduler.targets.modelled import board_of_device, device_id, is_modelled, modelled_boards
from scheduler.targets.registry import Backend, backend_of, backends, load_part


def probe_devices() -> tuple[DeviceInfo | AbsentDevice, ...]:
    """Return every device that can be opened here, and each absent kind with the reason."""
    return tuple(device for backend in backends() for device in _provider(backend).probe())


def open_device(device_id: str, threads: int | None = None) -> Device:
    """Open the device of that id: ``cpu``, ``cpu-gfx1100`` …, ``rocm:0`` or ``cuda:0``.

    ``threads`` is the number of host threads of a CPU emulation; None means all cores. Raises
    ``UserError`` for an unknown id and for a device with modelled times, ``DeviceError`` if the
    device is not available.
    """
    if is_modelled(device_id):
        board = board_of_device(device_id)
        emulation = emulation_of(find(board.target))
        alternative = f": use {emulation.name}, which emulates {board.target}" if emulation else ""
        raise UserError(
            f"{device_id} is modelled (`tune` only) and cannot run kernels{alternative}"
        )
    for backend in backends():
        if re.fullmatch(backend.device_ids, device_id):
            device = _provider(backend).open(device_id, threads)
            if device is not None:
                return device
    available = ", ".join(
        device_info.id for device_info in probe_devices() if isinstance(device_info, DeviceInfo)
    )
    raise UserError(f"unknown device {device_id!r}; available: {available}")


def default_device(target: Target) -> str:
    """Return the default device id of a target."""
    return backend_of(target).default_device.format(target=target.name)


def _provider(backend: Backend) -> DeviceProvider:
    provider: DeviceProvider = load_part(backend.devices)
    return provider


def modelled_device(name: str) -> DeviceInfo:
    """Return the device of that name, ``model:gfx942`` or ``model:MI300X``. Raises ``UserError``
    listing the known devices."""
    return _modelled_info(board_of_device(name))


def modelled_devices() -> tuple[DeviceInfo, ...]:
    """Return every board with modelled times."""
    return tuple(_modelled_info(board) for board in modelled_boards())


def _modelled_info(board: Board) -> DeviceInfo:
    return DeviceInfo(
        id=device_id(board),
        target=board.target,
        name=f"{board.name}, modelled",
        driver="",
        runtime="",
        compute_units=board.compute_units,
        memory_bytes=0,
        emulated=False,
        attributes={"modelled": "times of the instructions, from published figures"},
    )
