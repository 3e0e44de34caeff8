"""The tuner's interface to the model of a GPU (``scheduler/cycles``): a job in, a report out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from scheduler.cycles.report import Band, Report
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.modelled.job import ModelJob
from scheduler.tuning.modelled_time import ModelledTime

Model: TypeAlias = Callable[[ModelJob, str], Report]
"""Models a ``ModelJob`` from its listing. Raises ``UserError`` that explains what it cannot
model."""

_NS = 1000.0  # a report's times are in microseconds


def pack_answer(report: Report) -> dict[str, Any]:
    """Return what a tuner stores of a report, in JSON's own types."""
    band = report.time_us
    return {
        "version": report.version,
        "time_ns": [_NS * band.low, _NS * band.mid, _NS * band.high],
        "sentence": report.sentence,
        "sampled": report.sampled,
        "unknown": dict(report.unknown),
        "notes": list(dict.fromkeys(note for one in report.launches for note in one.notes)),
        "cut": any(one.cut for one in report.launches),
    }


def parse_answer(answer: Mapping[str, Any], device: str) -> ModelledTime:
    """Return the modelled time of an answer. Raises ``ValueError`` for an invalid time."""
    low, mid, high = (float(time) for time in answer["time_ns"])
    if not 0 < low <= mid <= high < float("inf"):
        raise ValueError(f"{low:g}, {mid:g}, {high:g} ns are no band")
    return ModelledTime(
        device=device,
        board=board_of_device(device).name,
        version=int(answer["version"]),
        time_ns=Band(low, mid, high),
        sentence=str(answer["sentence"]),
        sampled=str(answer["sampled"]),
        unknown={str(name): int(count) for name, count in answer["unknown"].items()},
        notes=tuple(map(str, answer["notes"])),
        cut=bool(answer["cut"]),
    )
