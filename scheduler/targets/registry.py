"""The registry of backends: for each target, the parts that serve it.

A part is a dotted name, ``package.module:ATTRIBUTE``, imported on first use: some parts cost as
much to import as all the rest. The package that uses a part defines its interface.

Installed packages add backends as entry points in the group ``kiln.backends``, each a ``Backend``;
they are loaded only if a name is not built in, or all are listed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from scheduler.errors import UserError
from scheduler.targets.model import Board, Target

ENTRY_POINT_GROUP = "kiln.backends"
# Suffixes of product names whose figures differ.
_EDITIONS = "Ti|SUPER|D|Laptop|NVL|GRE"


@dataclass(frozen=True)
class Backend:
    """One backend's parts; "" for a part that it does not have."""

    name: str
    targets: str  # tuple[Target, ...]
    scheduling: str  # codegen.scheduling.SchedulingFactory
    recipe: str  # build.recipe.Recipe, of the scheduling's sources
    compilers: str  # build.toolchains: Callable[[Search], tuple[Found, ...]]
    listings: str  # isa.reader.ListingReader
    devices: str  # runtime.device.DeviceProvider
    device_ids: str  # a regular expression that matches its devices' ids, and no other backend's
    default_device: str  # the device id, from ``{target}``, if no device is known
    competitors: tuple[str, ...] = ()
    """Further schedulings for the same targets (subclasses of codegen.scheduling.BaseScheduling),
    whose candidates compete with those of ``scheduling``, which still makes the untuned default."""

    recipes: tuple[str, ...] = ()  # build.recipe.Recipe, of the competitors' sources
    boards: str = ""  # tuple[Board, ...], the reference board of each target first
    occupancy: str = ""  # isa.occupancy.OccupancyRules


BUILT_IN = (
    Backend(
        name="rocm",
        targets="scheduler.targets.generations:AMD_TARGETS",
        scheduling="scheduler.codegen.rocm.scheduling:ROCmCPPScheduling",
        recipe="scheduler.build.rocm.recipe:GPU",
        compilers="scheduler.build.toolchains:clang_compilers",
        listings="scheduler.isa.rocm.reader:GPU",
        devices="scheduler.runtime.rocm:DEVICES",
        device_ids=r"rocm:\d{1,3}",
        default_device="rocm:0",
        boards="scheduler.targets.generations:AMD_BOARDS",
        occupancy="scheduler.isa.rocm.rules:RULES",
    ),
    Backend(
        name="cuda",
        targets="scheduler.targets.generations:NVIDIA_TARGETS",
        scheduling="scheduler.codegen.rocm.scheduling:ROCmCPPScheduling",
        recipe="scheduler.build.cuda.recipe:RECIPE",
        competitors=("scheduler.codegen.cutedsl.scheduling:CuteDSLScheduling",),
        recipes=("scheduler.build.cutedsl.recipe:RECIPE",),
        compilers="scheduler.build.cutedsl.toolchains:nvidia_compilers",
        listings="scheduler.isa.cuda.reader:READER",
        devices="scheduler.runtime.cuda:DEVICES",
        device_ids=r"cuda:\d{1,3}",
        default_device="cuda:0",
        boards="scheduler.targets.generations:NVIDIA_BOARDS",
        occupancy="scheduler.isa.cuda.rules:RULES",
    ),
    Backend(
        name="emulation",
        targets="scheduler.targets.emulation:EMULATIONS",
        scheduling="scheduler.codegen.rocm.scheduling:ROCmCPPScheduling",
        recipe="scheduler.build.rocm.recipe:EMULATION",
        compilers="scheduler.build.toolchains:clang_compilers",
        listings="scheduler.isa.rocm.reader:EMULATION",
        devices="scheduler.runtime.cpu:DEVICES",
        device_ids=r"cpu(-gfx\w+)?|isa:gfx\w+",
        default_device="{target}",
    ),
)


def load_part(reference: str) -> Any:
    """Import the object of a dotted name. ``UserError`` if an installed backend names one that does
    not exist."""
    module, _, attribute = reference.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"cannot load the backend part {reference}: {error}") from error


def backends() -> Iterator[Backend]:
    """Yield every backend, those of installed packages last."""
    yield from BUILT_IN
    yield from _load_installed(tuple(sys.path))


def backend_of(target: Target) -> Backend:
    return next(backend for backend in backends() if backend.name == target.backend)


def names() -> tuple[str, ...]:
    """Return all targets, in display order."""
    return tuple(target.name for backend in backends() for target in targets_of(backend))


def find(name: str) -> Target:
    """Return the target of that name. Raises ``UserError`` that lists the known ones."""
    for backend in backends():
        for target in targets_of(backend):
            if target.name == name:
                return target
    raise UserError(f"unknown target {name!r}; use one of: {', '.join(names())}")


def targets_of(backend: Backend) -> tuple[Target, ...]:
    """Return the targets of a backend."""
    targets: tuple[Target, ...] = load_part(backend.targets)
    return targets


def emulation_of(target: Target) -> Target | None:
    """Return the emulation that runs a GPU's sources on this machine's cores, or None."""
    candidates = (candidate for backend in backends() for candidate in targets_of(backend))
    return next((candidate for candidate in candidates if candidate.emulates == target.name), None)


def boards(target: str) -> tuple[Board, ...]:
    """Return the common boards of a target, the reference one first; none for the emulation."""
    backend = backend_of(find(target))
    if not backend.boards:
        return ()
    all_boards: tuple[Board, ...] = load_part(backend.boards)
    return tuple(board for board in all_boards if board.target == target)


def board_of(target: str, device_name: str) -> Board | None:
    """Return the board for the name that a device reports; None if the table does not have it.

    Another edition of a board in the table is a different board (a 3090 Ti is not a 3090).
    """
    return next(
        (
            board
            for board in boards(target)
            if _is_board_name(board.name.split(" (")[0], device_name)
        ),
        None,
    )


def _is_board_name(board: str, device_name: str) -> bool:
    pattern = rf"(?<!\w){re.escape(board)}(?!\w)(?! (?:{_EDITIONS})\b)"
    return re.search(pattern, device_name) is not None


@lru_cache(maxsize=1)
def _load_installed(path: tuple[str, ...]) -> tuple[Backend, ...]:  # noqa: ARG001 - what it depends on
    """Load the backends of installed packages, by name. ``UserError`` if one cannot be loaded."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - not needed for built-in names

    installed = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name):
        backend = load_part(entry.value)
        if not isinstance(backend, Backend):
            raise UserError(f"the entry point {entry.name} ({entry.value}) is not a backend")
        installed.append(backend)
    return tuple(installed)
