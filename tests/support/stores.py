"""How wide the stores of kernels are: those to memory, by their instructions' names; spills."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.build.rocm.metadata import parse_kernels as kernels_of
from scheduler.cycles.report import LaunchReport, Report
from scheduler.isa.reader import reader_of
from scheduler.targets import Target
from tests.support.kernel_bars import LEAST_STORED_BYTES

_STORE = re.compile(r"^(?:global|buffer|flat)_store_(?:d16_hi_)?(\w+)$")
_WIDTHS: Mapping[str, int] = {
    **{"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16},
    **{"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16},
}


@dataclass(frozen=True)
class Stored:
    """Bytes that a launch stores, and those of them by instructions of fewer than 8 a lane."""

    total: float
    narrow: float

    def __add__(self, other: Stored) -> Stored:
        return Stored(self.total + other.total, self.narrow + other.narrow)


def width_bytes(mnemonic: str) -> int:
    """Bytes a lane that an instruction stores to memory; 0 for any other instruction."""
    found = _STORE.match(mnemonic)
    if found is None:
        return 0
    name = found[1].removesuffix("_d16_hi").removesuffix("_e32").removesuffix("_e64")
    return _WIDTHS.get(name, 0)


def stored(listing: str, target: Target, launch: LaunchReport, least_bytes: int) -> Stored:
    """By all waves of a launch; narrow are those of fewer than ``least_bytes`` a lane."""
    functions = reader_of(target).parse(listing).functions
    function = next(one for one in functions if one.name == launch.function)
    waves = math.prod(launch.grid) * launch.waves
    total = narrow = 0.0
    for each in launch.instructions:
        width = width_bytes(function.instructions[each.index].mnemonic)
        written = width * each.executed * each.lanes * waves
        total += written
        narrow += written if width < least_bytes else 0.0
    return Stored(total, narrow)


def narrow_share(found: Sequence[tuple[str, Report]], target: Target) -> float:
    """Of what kernels store, as their listings and reports, the share that is narrow."""
    written = sum(
        (
            stored(listing, target, launch, LEAST_STORED_BYTES)
            for listing, report in found
            for launch in report.launches
        ),
        Stored(0.0, 0.0),
    )
    return written.narrow / written.total if written.total else 0.0


def spilled(listing: str) -> int:
    """Registers of a listing's kernels that lie in memory."""
    return sum(one.vgpr_spill_count + one.sgpr_spill_count for one in kernels_of(listing).values())
