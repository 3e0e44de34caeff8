"""A candidate's modelled time: a figure of its own kind, beside measurements and never among them.

It has no samples, so it has no interval: the ends of its band are the same model with the constants
at their low and their high ends (``cycles/report.py``). Two candidates are compared end by end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cattrs import Converter

from scheduler.cycles.report import Band
from scheduler.ir.codec import decode, make_codec

#: By how much of a time two kernels must differ before the model tells them apart: differences
#: below it were noise against measurements (docs/adr/0028-modelled-times.md).
LEAST_DIFFERENCE = 0.10


@dataclass(frozen=True)
class ModelledTime:
    """What the model says of a kernel's call on a board, in nanoseconds.

    ``device`` is the modelled device (``model:MI300X``), ``version`` the model's. ``unknown``
    counts the instructions that it does not know, by mnemonic; ``sampled`` says which part of the
    launch was run, ``cut`` that the emulator's limits ended some of its waves, ``notes`` what else
    a reader should know. ``checked_at`` are the sizes at which the same source gave the right
    results on the CPU emulation, ``unchecked`` says why there are none.
    """

    device: str
    board: str
    version: int
    time_ns: Band
    sentence: str = ""
    sampled: str = ""
    unknown: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checked_at: tuple[Mapping[str, int], ...] = ()
    unchecked: str = ""
    cut: bool = False

    @property
    def obstacle(self) -> str:
        """Why it may not be preferred to another; "" where it may."""
        if self.unknown:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self.unknown.items()))
            return f"the model does not know {names}"
        if self.cut:
            return "the emulator's limits cut some of its waves: the time is of what was run"
        return f"not checked: {self.unchecked}" if self.unchecked else ""


def is_tied(one: ModelledTime, fastest: ModelledTime) -> bool:
    """Whether the model cannot call ``one`` slower: at some end of the band, each with the same
    constants for both, they differ by less than it can tell apart."""
    ends = zip(_ends(one.time_ns), _ends(fastest.time_ns), strict=True)
    return any(slow <= (1 + LEAST_DIFFERENCE) * fast for slow, fast in ends)


def fastest_first(times: Mapping[int, ModelledTime]) -> list[int]:
    """Places in the order of their modelled times, of equals the first."""
    return sorted(times, key=lambda place: (times[place].time_ns.mid, place))


def devices_of(figures: Iterable[ModelledTime | None]) -> Sequence[str]:
    """The devices that were modelled, each once."""
    return list(dict.fromkeys(one.device for one in figures if one is not None))


def to_json(modelled: ModelledTime) -> dict[str, Any]:
    """As a JSON object."""
    data: dict[str, Any] = _codec().unstructure(modelled)
    return data


def from_json(data: Any) -> ModelledTime:
    """From what ``to_json`` gave. Raises ``UserError`` naming the field that is wrong."""
    return decode(_codec(), data, ModelledTime, "modelled time")


@cache
def _codec() -> Converter:
    return make_codec()


def _ends(band: Band) -> tuple[float, float, float]:
    return band.low, band.mid, band.high
