"""The ledger: the result of every candidate of every problem.

The JSON lines can be read back, and warm-start the next run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from cattrs import Converter

from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.metrics import TIME
from scheduler.build.model import Build
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.names import backend_of_kernel
from scheduler.codegen.problem import ProblemShape
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.codec import decode, make_codec
from scheduler.tuning.modelled_time import ModelledTime

LEDGER_SCHEMA = 1
T = TypeVar("T")


class CandidateState(StrEnum):
    """The result of a candidate."""

    REJECTED = "rejected"  # by a rule, before anything was compiled
    COMPILE_ERROR = "compile error"
    WRONG = "wrong"  # the result differs from the reference's
    TIMEOUT = "timeout"
    CRASH = "crash"
    FAILED = "failed"  # it could not be loaded or launched
    UNTRIED = "untried"  # the budget ended, or the run was cancelled, before its turn
    NOT_MODELLED = "not modelled"  # in a run with modelled times: the model failed
    MEASURED = "measured"
    MODELLED = "modelled"
    CHOSEN = "chosen"  # by measured times; in a run with modelled times by those


_STATES = {
    Stage.RULE: CandidateState.REJECTED,
    Stage.RENDER: CandidateState.REJECTED,
    Stage.COMPILE: CandidateState.COMPILE_ERROR,
    Stage.MODEL: CandidateState.NOT_MODELLED,
    Stage.LOAD: CandidateState.FAILED,
    Stage.CHECK: CandidateState.WRONG,
    Stage.RUN: CandidateState.FAILED,
    Stage.TIMEOUT: CandidateState.TIMEOUT,
    Stage.CRASH: CandidateState.CRASH,
}


def state_of(rejected: Rejected) -> CandidateState:
    return _STATES[rejected.stage]


def legacy_state(state: CandidateState) -> str:
    """Return the value of the key ``fate``, as the first ledgers spelled it."""
    return "refused" if state is CandidateState.REJECTED else str(state)


@dataclass(frozen=True)
class Entry:
    """One candidate of one problem at one binding.

    ``order`` counts the run's candidates as they were first timed or rejected (0: never tried);
    ``at_s`` is the time of that, in seconds from the run's start. ``tied`` is set if the
    candidate's median lies within the interval of the fastest one. ``expected_ns`` is the cost
    model's time, if there is one. ``modelled`` is the time from the model of the GPU's instructions
    (``cycles/``): a run with modelled times has no other; in a measured run it determined the
    candidate's order.
    """

    problem: str
    node: str
    bindings: Mapping[str, int]
    kernel: str
    template: str
    config: Mapping[str, ConfigValue]
    description: str
    state: CandidateState
    is_default: bool = False
    stage: str = ""
    reason: str = ""
    detail: str = ""
    order: int = 0
    at_s: float = 0.0
    expected_ns: float | None = None
    measurement: Measurement | None = None
    modelled: ModelledTime | None = None
    tied: bool = False
    code_digest: str = ""
    compile_s: float = 0.0
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shape: ProblemShape | None = None

    @property
    def median_ns(self) -> float | None:
        return None if self.measurement is None else self.measurement.median_ns

    @property
    def is_modelled(self) -> bool:
        """Whether the entry belongs to a run with modelled times and has one."""
        decided = self.state in (CandidateState.MODELLED, CandidateState.CHOSEN)
        return decided and self.modelled is not None and self.measurement is None

    def to_json(self) -> dict[str, Any]:
        """Return one line of the ledger."""
        line = {"record": "candidate", **_codec().unstructure(self)}
        line["fate"] = legacy_state(self.state)
        if (measured := self.measurement) is not None:
            bounds = measured.metrics[TIME].bounds
            line["measurement"] |= {
                "median_ns": measured.median_ns,
                "low_ns": measured.low_ns if bounds else None,
                "high_ns": measured.high_ns if bounds else None,
                "bounds": bounds,
            }
        return line


@cache
def _codec() -> Converter:
    return make_codec()


def build_facts(build: Build) -> dict[str, Any]:
    """Return the facts of a build that an entry stores."""
    return {
        "code_digest": build.code_digest,
        "compile_s": 0.0 if build.cached else build.duration_s,
        "resources": {
            name: dict(function_resources) for name, function_resources in build.resources.items()
        },
    }


@dataclass(frozen=True)
class CurvePoint:
    """A step of the best-so-far curve: the number of candidates tried, and the time in the run."""

    tried: int
    at_s: float
    best_ns: float


def best_so_far(tried: Iterable[tuple[float, float | None]]) -> tuple[CurvePoint, ...]:
    """Return the curve of one problem: a point for each candidate that was faster than all before.
    ``tried`` has, in the order of trying, the time at which each result was known (s) and the
    candidate's time (ns; None if it has none)."""
    points: list[CurvePoint] = []
    for count, (at_s, time_ns) in enumerate(tried, start=1):
        if time_ns is not None and (not points or time_ns < points[-1].best_ns):
            points.append(CurvePoint(count, at_s, time_ns))
    return tuple(points)


def write_jsonl(
    path: Path,
    header: Mapping[str, Any],
    entries: Iterable[Entry],
    fusions: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Write the run's facts on the first line, then a line for each candidate, then one for each
    fused kernel that was timed against its parts."""
    first_line = {"record": "run", "schema": LEDGER_SCHEMA, **header}
    fusion_lines = [{"record": "fusion", **fusion} for fusion in fusions]
    with path.open("w", encoding="utf-8") as file:
        for line in (first_line, *(entry.to_json() for entry in entries), *fusion_lines):
            file.write(json.dumps(line, default=str) + "\n")


def read_lines(path: Path, kind: type[T], states: Collection[CandidateState] = ()) -> list[T]:
    """Return the candidates of a ledger as ``kind``; if ``states`` are given, only those in one.
    Raises ``UserError`` that names the line and the field, or says that the file is no ledger."""
    texts = [legacy_state(state) for state in states]  # the lines' values may be unhashable
    return [
        decode(_codec(), line, kind, f"{path}, line {number}")
        for number, line in read_jsonl(path).items()
        if not texts or line.get("fate") in texts
    ]


def read_jsonl(path: Path) -> dict[int, dict[str, Any]]:
    """Return a ledger's candidate lines by line number. Raises ``UserError`` if it is no ledger."""
    try:
        with path.open(encoding="utf-8") as file:
            lines = {n: json.loads(line) for n, line in enumerate(file, start=1) if line.strip()}
        header = lines[min(lines)] if lines else {}
        if header["record"] != "run" or header["schema"] != LEDGER_SCHEMA:
            raise UserError(f"{path} is not a ledger of this version")
        return {
            number: record for number, record in lines.items() if record["record"] == "candidate"
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be read as a ledger: {error}") from None


@dataclass(frozen=True)
class BackendBest:
    """The fastest candidate of one backend, of ``timed`` that were timed. ``ratio`` is its time
    over the fastest of all, ``samples`` the number of samples of its median."""

    backend: str
    kernel: str
    median_ns: float
    samples: int
    timed: int
    ratio: float

    def __str__(self) -> str:
        counted = f"n={self.samples}, {self.timed} timed"
        return f"{self.backend} {self.median_ns / 1e6:.4f} ms ({counted}; {self.ratio:.2f}x)"


def best_of_backends(entries: Iterable[Entry]) -> tuple[BackendBest, ...]:
    """Return the fastest timed candidate of each backend, the fastest first."""
    timed: dict[str, list[tuple[float, str, int]]] = {}
    for entry in entries:
        if entry.measurement is not None:
            timing = (entry.measurement.median_ns, entry.kernel, len(entry.measurement.samples_ns))
            timed.setdefault(backend_of_kernel(entry.kernel), []).append(timing)
    best = sorted((min(timings), backend, len(timings)) for backend, timings in timed.items())
    return tuple(
        BackendBest(backend, kernel, median, samples, count, median / best[0][0][0])
        for (median, kernel, samples), backend, count in best
    )


@dataclass(frozen=True)
class Operand:
    """An input of a problem, as the log shows it."""

    dtype: str  # torch.float16
    size: tuple[int, ...]
    stride: tuple[int, ...]
