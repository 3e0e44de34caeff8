"""The records of a file of results.

A run is self-contained: graph, devices, compilers and candidates; kernels are shared by name. Times
are nanoseconds per launch, timestamps UTC in ISO 8601, ``at_s`` seconds since the run's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.benchmark.measurement import Check
from scheduler.benchmark.metrics import Metric
from scheduler.codegen.kernel import ConfigValue, KernelArg, Launch, LineOrigin
from scheduler.codegen.problem import ProblemShape
from scheduler.ir.graph import Expr
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.budget import Budget

SCHEMA = 1


@dataclass(frozen=True)
class Origin:
    """The Kiln that measured, when, and on what kind of host (no names); "" if unknown."""

    version: str
    commit: str
    date: str
    host: str


@dataclass(frozen=True)
class GraphId:
    """The graph, which is not in the file: the importing side has it, identified by its hash."""

    name: str
    digest: str


@dataclass(frozen=True)
class Compiler:
    """The compiler of the code that ran, and its flags."""

    name: str
    version: str
    digest: str
    flags: tuple[str, ...]


@dataclass(frozen=True)
class KernelText:
    """A kernel as it was rendered: enough to show it after the generator has changed."""

    source_digest: str
    template: str
    config: Mapping[str, ConfigValue]
    source_file: str
    source: str
    args: tuple[KernelArg, ...]
    launches: tuple[Launch, ...]
    workspace_bytes: Expr


@dataclass(frozen=True)
class BuildFacts:
    """A candidate's code: built by ``compilers[compiler]`` of its run, for the run's target."""

    compiler: int
    code_digest: str
    duration_s: float
    resources: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class MeasurementRecord:
    """A measurement on ``devices[device]`` of its run; the columns of ``readings`` are as long as
    the samples."""

    device: int
    batch: int
    samples_ns: tuple[float, ...]
    rejected: tuple[tuple[float, str], ...]
    readings: Mapping[str, tuple[float, ...]]
    metrics: Mapping[str, Metric]
    check: Check


@dataclass(frozen=True)
class CandidateRecord:
    """One line of the ledger. ``state`` is done, rejected, quarantined or cancelled (not tried);
    candidates that were built, or failed to build, have ``kernel`` and ``build``."""

    position: int
    state: str
    config: Mapping[str, ConfigValue]
    stage: str
    reason: str
    detail: str
    chosen: bool
    tied: bool
    at_s: float | None
    kernel: str
    description: str
    call: Mapping[str, str]
    line_origins: tuple[LineOrigin, ...]
    build: BuildFacts | None
    timed: MeasurementRecord | None


@dataclass(frozen=True)
class OperandRecord:
    """An input of the call, as the autotune log shows it; ``dtype`` is Kiln's short name."""

    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class TaskRecord:
    """One problem with its candidates; ``node`` is the first scheduled node that has it."""

    problem: str  # the sha256 of ``text``
    text: str  # the canonical description
    node: str
    title: str
    operands: tuple[OperandRecord, ...]
    shape: ProblemShape | None
    state: str
    reason: str
    spent_s: float
    candidates: tuple[CandidateRecord, ...]


@dataclass(frozen=True)
class RevisionRecord:
    """The commit of Kiln that the kernels come from, if it is not the Kiln that measured them;
    ``date`` is the commit's time, its position in a history."""

    commit: str
    date: str
    subject: str


@dataclass(frozen=True)
class RunRecord:
    """A tuning run at one binding of the sizes; or, with a ``revision``, one measurement of the
    kernels of another commit, whose times go into histories and select nothing."""

    origin: Origin
    graph: GraphId
    device: str
    target: str
    bindings: Mapping[str, int]
    seed: int | None  # None: each problem's own hash is the seed
    strategy: str
    budget: Budget
    candidate_limit: int | None
    state: str
    reason: str
    note: str
    started_at: str
    finished_at: str
    devices: tuple[DeviceInfo, ...]
    compilers: tuple[Compiler, ...]
    tasks: tuple[TaskRecord, ...]
    revision: RevisionRecord | None = None


@dataclass(frozen=True)
class Results:
    """A file: the runs, and the kernels that they name.

    ``listings`` has the disassembly of builds by the digest of their code, as the compiler's
    recipe stores it: best of the candidates that people look at first, since it is large.
    """

    kernels: Mapping[str, KernelText]
    runs: tuple[RunRecord, ...]
    listings: Mapping[str, str] = field(default_factory=dict)
