"""A candidate's modelled time, which is never mixed with measurements.

It has no samples and so no interval: its band comes from running the same model with the constants
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

#: The smallest difference by which the model tells two kernels apart: smaller ones were noise
#: against measurements (docs/adr/0028-modelled-times.md).
MIN_DIFFERENCE = 0.10


@dataclass(frozen=True)
class ModelledTime:
    """The modelled time of a kernel's call on a board, in nanoseconds.

    ``device`` is the modelled device (``model:MI300X``), ``version`` the model's. ``unknown``
    counts, by mnemonic, the instructions that the model does not know; ``sampled`` says which part
    of the launch was run, ``cut`` that the emulator's limits ended some waves, ``notes`` what else
    a reader should know. ``checked_at`` are the sizes at which the same source gave correct results
    on the CPU emulation; ``unchecked`` says why there are none.
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
        """Return why it must not be preferred to another; "" if it may."""
        if self.unknown:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self.unknown.items()))
            return f"instructions unknown to the model: {names}"
        if self.cut:
            return "the emulator's limits stopped some waves: the time covers what ran"
        return f"not checked: {self.unchecked}" if self.unchecked else ""


def is_tied(candidate: ModelledTime, fastest: ModelledTime) -> bool:
    """Whether the model cannot call ``candidate`` slower: at some end of the band, with the same
    constants for both, the difference is too small for the model to tell."""
    ends = zip(_ends(candidate.time_ns), _ends(fastest.time_ns), strict=True)
    return any(slow <= (1 + MIN_DIFFERENCE) * fast for slow, fast in ends)


def fastest_first(times: Mapping[int, ModelledTime]) -> list[int]:
    """Return the indices by modelled time, ties by index."""
    return sorted(times, key=lambda index: (times[index].time_ns.mid, index))


def devices_of(figures: Iterable[ModelledTime | None]) -> Sequence[str]:
    """Return the modelled devices, each once."""
    return list(dict.fromkeys(modelled.device for modelled in figures if modelled is not None))


def to_json(modelled: ModelledTime) -> dict[str, Any]:
    """Return a JSON object."""
    data: dict[str, Any] = _codec().unstructure(modelled)
    return data


def from_json(data: Any) -> ModelledTime:
    """Parse what ``to_json`` returned. Raises ``UserError`` naming the wrong field."""
    return decode(_codec(), data, ModelledTime, "modelled time")


@cache
def _codec() -> Converter:
    return make_codec()


def _ends(band: Band) -> tuple[float, float, float]:
    return band.low, band.mid, band.high
