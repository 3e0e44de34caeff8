"""Boards that times are modelled for (``scheduler/cycles``), and the names of their devices.

Such a device runs nothing: its times are modelled, never measured.
"""

from __future__ import annotations

import re

from scheduler.errors import UserError
from scheduler.targets.generations import AMD_GPUS
from scheduler.targets.model import Board
from scheduler.targets.registry import backends, boards, targets_of

DEVICE_PREFIX = "model:"
#: The targets that the cycle model has figures of.
TARGETS = tuple(gpu.processor for gpu in AMD_GPUS if gpu.machine is not None)


def is_modelled(device_id: str) -> bool:
    """Whether the device id is that of a modelled device."""
    return device_id.startswith(DEVICE_PREFIX)


def modelled_boards() -> tuple[Board, ...]:
    """Return every board that times are modelled for, each target's reference board first."""
    return tuple(board for target in TARGETS for board in boards(target))


def device_id(board: Board) -> str:
    """Return a board's id as a modelled device: ``model:MI300X``, ``model:RX7900XTX``."""
    return DEVICE_PREFIX + _short_name(board)


def board_of_device(name: str) -> Board:
    """Return the board of a modelled device: ``model:gfx942`` is the target's reference board,
    ``model:MI300X`` and ``model:gfx942:MI300X`` are that board.

    Raises ``UserError`` that lists the known devices.
    """
    identifier = name.removeprefix(DEVICE_PREFIX)
    target, _, board_name = identifier.rpartition(":")
    for board in modelled_boards():
        if identifier == board.target:
            return board
        names = (_normalize(board.name), _normalize(_short_name(board)))
        if _normalize(board_name) in names and target in ("", board.target):
            return board
    raise UserError(
        f"device {name!r}: {_unknown_device(identifier)};"
        f" the modelled devices are {_list_devices()}"
    )


def _unknown_device(identifier: str) -> str:
    for backend in backends():
        for target in targets_of(backend):
            if identifier.partition(":")[0] == target.name and target.name not in TARGETS:
                return f"times are not modelled for {target.name}" + (
                    ": measure on the GPU instead" if backend.name == "cuda" else ""
                )
    return "no such board"


def _list_devices() -> str:
    device_names = [
        f"{DEVICE_PREFIX}{target} ({', '.join(_short_name(board) for board in boards(target))})"
        for target in TARGETS
    ]
    return ", ".join(device_names)


def _short_name(board: Board) -> str:
    return board.name.split(" (")[0].replace(" ", "")


def _normalize(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
