"""The interface to the model of a GPU (``scheduler/cycles``): a job in, an answer out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from cattrs import Converter

from scheduler.benchmark.case_builder import index_limits
from scheduler.codegen.benchmark_request import BenchmarkRequest, register_arg_union
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import Launch
from scheduler.cycles.report import Band, Report
from scheduler.ir.codec import decode, make_codec
from scheduler.ir.graph import Expr
from scheduler.targets import Target
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problems import TuningProblem


@dataclass(frozen=True)
class ModelJob:
    """One kernel on one modelled device. ``launches`` and ``workspace_bytes`` are the rendered
    kernel's; ``index_limits`` gives, for buffers of indices, the length of the indexed axis."""

    device: str
    request: BenchmarkRequest
    launches: tuple[Launch, ...]
    workspace_bytes: Expr
    index_limits: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        data: dict[str, Any] = _codec().unstructure(self)
        return data

    @staticmethod
    def from_json(data: Any) -> ModelJob:
        """Parse what ``to_json`` returned. Raises ``UserError`` naming the wrong field."""
        return decode(_codec(), data, ModelJob, "job")


def job_of(problem: TuningProblem, caller: TemplateCaller, target: Target, device: str) -> ModelJob:
    """Return the job of one candidate at the problem's sizes."""
    return ModelJob(
        device=device,
        request=caller.benchmark_request(target.name, problem.bindings),
        launches=tuple(caller.kernel.launches),
        workspace_bytes=caller.kernel.workspace_bytes,
        index_limits=index_limits(problem.node, dict(problem.bindings)),
    )


@cache
def _codec() -> Converter:
    codec = make_codec()
    register_arg_union(codec)
    return codec


Model: TypeAlias = Callable[[ModelJob, str], Report]
"""Models a ``ModelJob`` from its listing. Raises ``UserError`` that explains what it cannot
model."""

_NS_PER_US = 1000.0  # a report's times are in microseconds


def pack_answer(report: Report) -> dict[str, Any]:
    """Return what a tuner stores of a report, in JSON's own types."""
    band = report.time_us
    return {
        "version": report.version,
        "time_ns": [_NS_PER_US * band.low, _NS_PER_US * band.mid, _NS_PER_US * band.high],
        "sentence": report.sentence,
        "sampled": report.sampled,
        "unknown": dict(report.unknown),
        "notes": list(dict.fromkeys(note for launch in report.launches for note in launch.notes)),
        "cut": any(launch.cut for launch in report.launches),
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
