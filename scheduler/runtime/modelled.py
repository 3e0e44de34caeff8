"""Modelled devices: boards that are not present and whose times are modelled."""

from __future__ import annotations

from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Board
from scheduler.targets.modelled import board_of_device, device_id, modelled_boards


def modelled_device(name: str) -> DeviceInfo:
    """Return the device of that name, ``model:gfx942`` or ``model:MI300X``. Raises ``UserError``
    listing the known devices."""
    return _info(board_of_device(name))


def modelled_devices() -> tuple[DeviceInfo, ...]:
    """Return every board with modelled times."""
    return tuple(_info(board) for board in modelled_boards())


def _info(board: Board) -> DeviceInfo:
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
