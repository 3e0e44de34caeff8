"""The registry of backends: who serves which target, part by part.

A part is a dotted name, ``package.module:ATTRIBUTE``, imported when it is first asked for: some
cost as much to import as all the rest. The package that asks for a part states its
interface.
Installed packages add backends of their own as entry points in the group ``kiln.backends``, each
a ``Backend``; they are looked for only where a name is not built in, or all are listed.
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
# What makers add to a product's name where its figures are other ones.
_EDITIONS = "Ti|SUPER|D|Laptop|NVL|GRE"


@dataclass(frozen=True)
class Backend:
    """One backend's parts, "" for one that it does not have."""

    name: str
    targets: str  # tuple[Target, ...]
    scheduling: str  # codegen.scheduling.SchedulingFactory
    recipe: str  # build.recipe.Recipe, of the scheduling's sources
    compilers: str  # build.toolchains: Callable[[Search], tuple[Found, ...]]
    listings: str  # isa.reader.ListingReader
    devices: str  # runtime.device.DeviceProvider
    device_ids: str  # a regular expression that the devices' ids match, and no other backend's
    default_device: str  # the id that one has where nothing is known of it, of ``{target}``
    competitors: tuple[str, ...] = ()
    """Further schedulings for the same targets (subclasses of codegen.scheduling.BaseScheduling),
    whose candidates compete with those of ``scheduling``; the untuned choice stays that one's."""

    recipes: tuple[str, ...] = ()  # build.recipe.Recipe, of the competitors' sources
    boards: str = ""  # tuple[Board, ...], the reference board of each target first
    occupancy: str = ""  # isa.occupancy.OccupancyRules


BUILT_IN = (
    Backend(
        name="rocm",
        targets="scheduler.targets.amd:TARGETS",
        scheduling="scheduler.codegen.rocm.scheduling:ROCmCPPScheduling",
        recipe="scheduler.build.rocm.recipe:GPU",
        compilers="scheduler.build.toolchains:clang_compilers",
        listings="scheduler.isa.rocm.reader:GPU",
        devices="scheduler.runtime.rocm:DEVICES",
        device_ids=r"rocm:\d{1,3}",
        default_device="rocm:0",
        boards="scheduler.targets.amd_boards:BOARDS",
        occupancy="scheduler.isa.rocm.rules:RULES",
    ),
    Backend(
        name="cuda",
        targets="scheduler.targets.nvidia:TARGETS",
        scheduling="scheduler.codegen.rocm.scheduling:ROCmCPPScheduling",
        recipe="scheduler.build.cuda.recipe:RECIPE",
        competitors=("scheduler.codegen.cutedsl.scheduling:CuteDSLScheduling",),
        recipes=("scheduler.build.cutedsl.recipe:RECIPE",),
        compilers="scheduler.build.cutedsl.toolchains:nvidia_compilers",
        listings="scheduler.isa.cuda.reader:READER",
        devices="scheduler.runtime.cuda:DEVICES",
        device_ids=r"cuda:\d{1,3}",
        default_device="cuda:0",
        boards="scheduler.targets.nvidia_boards:BOARDS",
        occupancy="scheduler.isa.cuda.rules:RULES",
    ),
    Backend(
        name="emulation",
        targets="scheduler.targets.amd:EMULATIONS",
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
    """The object of a dotted name. ``UserError`` where an installed backend names what is not
    there."""
    module, _, attribute = reference.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"a backend's part {reference} cannot be loaded: {error}") from error


def backends() -> Iterator[Backend]:
    """Every backend, those of installed packages last."""
    yield from BUILT_IN
    yield from _load_installed(tuple(sys.path))


def backend_of(target: Target) -> Backend:
    return next(backend for backend in backends() if backend.name == target.backend)


def names() -> tuple[str, ...]:
    """All targets, in the order in which they are shown."""
    return tuple(target.name for backend in backends() for target in targets_of(backend))


def find(name: str) -> Target:
    """The target of that name; ``UserError`` that lists the known ones where there is none."""
    for backend in backends():
        for target in targets_of(backend):
            if target.name == name:
                return target
    raise UserError(f"target {name!r} is not known; use one of: {', '.join(names())}")


def targets_of(backend: Backend) -> tuple[Target, ...]:
    """What a backend compiles for."""
    found: tuple[Target, ...] = load_part(backend.targets)
    return found


def emulation_of(target: Target) -> Target | None:
    """What runs a GPU's sources on this machine's cores; None where nothing does."""
    every = (one for backend in backends() for one in targets_of(backend))
    return next((one for one in every if one.emulates == target.name), None)


def boards(target: str) -> tuple[Board, ...]:
    """The common boards of a target, the reference one first; none for the emulation."""
    backend = backend_of(find(target))
    if not backend.boards:
        return ()
    known: tuple[Board, ...] = load_part(backend.boards)
    return tuple(board for board in known if board.target == target)


def board_of(target: str, device_name: str) -> Board | None:
    """The board that a device calls itself; None for one that is not in the table, as another
    edition of one that is (a 3090 Ti is no 3090)."""
    return next((b for b in boards(target) if _is_called(b.name.split(" (")[0], device_name)), None)


def _is_called(board: str, device_name: str) -> bool:
    whole = rf"(?<!\w){re.escape(board)}(?!\w)(?! (?:{_EDITIONS})\b)"
    return re.search(whole, device_name) is not None


@lru_cache(maxsize=1)
def _load_installed(path: tuple[str, ...]) -> tuple[Backend, ...]:  # noqa: ARG001 - what it depends on
    """Backends of installed packages, by name. ``UserError`` for one that cannot be loaded."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - of no use where none is looked for

    found = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name):
        backend = load_part(entry.value)
        if not isinstance(backend, Backend):
            raise UserError(f"the entry point {entry.name} ({entry.value}) is no backend")
        found.append(backend)
    return tuple(found)
