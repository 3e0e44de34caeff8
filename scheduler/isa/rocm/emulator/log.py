"""Records what waves do while they run, and builds traces afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.trace import Access, WaveTrace


class AccessRecord(NamedTuple):
    """One instruction's access by all waves of a group: ``instruction`` (an index) in run number
    ``run`` of the segment. ``addresses`` are [waves, lanes] (scalar: [waves, 1]), or [1, 1] for
    all; ``mask`` says which lanes, None: all."""

    run: int
    instruction: int
    addresses: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_] | None
    bytes: int
    second: npt.NDArray[np.int64] | None


Active = int | list[int]


@dataclass(eq=False)
class Segment:
    """What a group of waves did together: runs of instructions [first, end), each with the
    number of active lanes (per wave, or for all), and ``skipped``: waves without any did not
    execute it."""

    runs: list[tuple[int, int, Active, bool]] = field(default_factory=list)
    records: list[AccessRecord] = field(default_factory=list)


class Accesses(Mapping[int, Access]):
    """Maps positions in a trace to accesses, built on demand."""

    def __init__(self, found: dict[int, tuple[AccessRecord, int]]) -> None:
        self._found = found

    def __getitem__(self, position: int) -> Access:
        record, wave = self._found[position]
        addresses = record.addresses[wave if len(record.addresses) > 1 else 0]
        if record.mask is None:
            lanes = np.arange(len(addresses))
            return Access(addresses, lanes, record.bytes, _row(record.second, wave))
        lanes = np.nonzero(record.mask[wave])[0]
        second = _row(record.second, wave)
        return Access(
            addresses[lanes], lanes, record.bytes, None if second is None else second[lanes]
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _row(values: npt.NDArray[np.int64] | None, wave: int) -> npt.NDArray[np.int64] | None:
    return None if values is None else values[wave if len(values) > 1 else 0]


def build_trace(block: int, wave: int, parts: list[tuple[Segment, int]], cut: bool) -> WaveTrace:
    """Build a wave's trace from its segments, with its number in each."""
    executed: list[npt.NDArray[np.int32]] = []
    active: list[npt.NDArray[np.uint8]] = []
    record_by_step: dict[int, tuple[AccessRecord, int]] = {}
    position = 0
    for segment, column in parts:
        starts: list[int] = []
        for first, end, lanes, skipped in segment.runs:
            count = lanes if isinstance(lanes, int) else lanes[column]
            if skipped and not count:
                starts.append(-1)
                continue
            starts.append(position)
            executed.append(np.arange(first, end, dtype=np.int32))
            active.append(np.full(end - first, count, np.uint8))
            position += end - first
        for record in segment.records:
            start = starts[record.run]
            if start >= 0:
                at = start + record.instruction - segment.runs[record.run][0]
                if record.mask is None or record.mask[column].any():
                    record_by_step[at] = (record, column)
    return WaveTrace(
        block,
        wave,
        np.concatenate(executed) if executed else np.zeros(0, np.int32),
        np.concatenate(active) if active else np.zeros(0, np.uint8),
        Accesses(record_by_step),
        cut,
    )
