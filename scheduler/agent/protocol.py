"""What a server and a worker without the database say to each other: frozen dataclasses in JSON.

The worker asks, always; the server answers. What the worker sends is made by ``as_json`` and held
to ``codegen_app/api/worker_schemas.py``; what the server answers is read by ``read``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from cattrs import Converter

from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.metrics import MetricInputs, compute_metrics
from scheduler.build.model import Build, Toolchain
from scheduler.errors import Rejected, Stage
from scheduler.ir.codec import decode, make_codec
from scheduler.tuning.budget import Budget
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.prior_results import PriorResult
from scheduler.tuning.replay import GraphNodeRef, RecordedUse
from scheduler.tuning.warm_start import LedgerLine as ModelledLine

T = TypeVar("T")

SESSION_HEADER = "Kiln-Worker-Session"
URL_PREFIX = "api/v1/worker"
#: Results in one message, at most.
MAX_RESULTS_PER_MESSAGE = 32
#: Kernels that a search asks for in one message, at most.
MAX_KERNELS_PER_MESSAGE = 32


class Directive(StrEnum):
    """What a worker is to do next."""

    GO = "go on"
    STOP = "stop"  # nobody waits for this task any more: drop it
    PAUSE = "pause"  # give the task back, take none until asked to go on
    DRAIN = "drain"  # finish the task, then end


class GiveUp(StrEnum):
    """Why a worker does not finish a task."""

    STOPPED = "stopped"  # the worker was, or is paused: nothing of the task's
    DIED = "died"  # the process ended over it
    MACHINE = "machine"  # the worker's machine lacks something
    REJECTED = "rejected"  # the task cannot be measured there
    BUG = "bug"  # an error of the application's own


@dataclass(frozen=True)
class Welcome:
    """``worker`` is the name that the token gives; ``session`` goes with all that is sent then."""

    worker: str
    session: str
    queues: tuple[str, ...]


@dataclass(frozen=True)
class Reply:
    """What is to be done, and why."""

    say: Directive
    why: str = ""


@dataclass(frozen=True)
class Samples:
    """What of a measurement cannot be derived: times in nanoseconds a launch, and the check."""

    samples_ns: tuple[float, ...]
    batch: int
    check: Check
    rejected: tuple[tuple[float, str], ...] = ()
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @staticmethod
    def from_measurement(measured: Measurement) -> Samples:
        """Of a measurement."""
        return Samples(
            measured.samples_ns,
            measured.batch,
            measured.check,
            measured.rejected,
            measured.readings,
        )

    def measurement(
        self, kernel: str, device: str, bindings: Mapping[str, int], emulated: bool, moved: int = 0
    ) -> Measurement:
        """As the engine has it; the figures are derived here. ``moved`` are the bytes that the
        problem certainly moves."""
        return Measurement(
            kernel=kernel,
            device=device,
            bindings=dict(bindings),
            samples_ns=self.samples_ns,
            batch=self.batch,
            metrics=compute_metrics(MetricInputs(self.samples_ns, moved, self.readings)),
            rejected=self.rejected,
            check=self.check,
            emulated=emulated,
            readings=self.readings,
        )


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no measurement."""

    stage: Stage
    reason: str
    detail: str = ""

    @property
    def rejected(self) -> Rejected:
        """As the engine has it."""
        return Rejected(self.stage, self.reason, self.detail)


@dataclass(frozen=True)
class Result:
    """What became of one candidate: its samples, or its loss. The kernel is the key: the same
    again changes nothing."""

    kernel: str
    measured: Samples | None = None
    loss: Failure | None = None


@dataclass(frozen=True)
class FinalResult:
    """The last word on one candidate. ``measured`` is None where what was sent before holds."""

    kernel: str
    state: CandidateState
    tied: bool = False
    reason: str = ""
    measured: Samples | None = None
    loss: Failure | None = None


@dataclass(frozen=True)
class Library:
    """A kernel's built library: what it is fetched by, and how it was built; unless ``cached``, it
    was compiled for the run."""

    kernel: str
    digest: str
    size_bytes: int
    source_file: str
    source_digest: str
    code_digest: str
    toolchain: str
    toolchain_version: str
    toolchain_digest: str
    flags: tuple[str, ...]
    resources: Mapping[str, Mapping[str, Any]]
    cached: bool = True

    def build(self, target: str, directory: Any) -> Build:
        """As the engine has it, its library in a folder here."""
        return Build(
            target=target,
            toolchain=Toolchain(self.toolchain, self.toolchain_version, self.toolchain_digest),
            flags=self.flags,
            source_digest=self.source_digest,
            code_digest=self.code_digest,
            duration_s=0.0,
            log="",
            directory=directory,
            resources=self.resources,
            cached=self.cached,
            source_file=self.source_file,
        )


@dataclass(frozen=True)
class Task:
    """A task in the hands of a worker, until ``seconds`` pass without a sign of life.

    ``device`` is the worker's that the run is for (or another of its kind). ``seen`` are results of
    earlier attempts: their kernels are not measured anew before the last rounds. With a ``budget``
    the candidates are searched for among all that the generator offers, and their builds asked for
    as they are due; without one they are those of the ``libraries``. ``known`` won before on
    problems like this one, ``begins`` was modelled before, by ``begins_with``.
    """

    lease: str
    seconds: float
    title: str
    device: str
    graph: str
    graph_bytes: int
    node: str
    target: str
    bindings: Mapping[str, int]
    seed: int
    strategy: str
    libraries: tuple[Library, ...]
    seen: tuple[Result, ...] = ()
    budget: Budget | None = None
    known: tuple[PriorResult, ...] = ()
    begins_with: str = ""
    begins: tuple[ModelledLine, ...] = ()


@dataclass(frozen=True)
class ReplayBuild:
    """A kept build to be measured again: what it is called by, and how. ``key`` is what its result
    is sent under, in the place of a kernel's name."""

    key: str
    uses: tuple[RecordedUse, ...]
    library: Library


@dataclass(frozen=True)
class ReplayTask:
    """Kept builds of one problem, to be measured in turns on one device; held as a ``Task`` is.

    ``problem`` is the digest that a node at one of the ``places`` has still, if any does.
    """

    lease: str
    seconds: float
    title: str
    device: str
    target: str
    problem: str
    places: tuple[GraphNodeRef, ...]
    sizes: Mapping[str, int]
    seed: int
    repeats: tuple[ReplayBuild, ...]


@dataclass(frozen=True)
class BuildResult:
    """What became of a build that a search asked for: a library, or why there is none."""

    kernel: str
    library: Library | None = None
    loss: Failure | None = None


@dataclass(frozen=True)
class BuildResults:
    """Of the kernels that were asked for, those whose build is over; for the others the worker asks
    again, after ``wait_s`` at most."""

    wait_s: float
    builds: tuple[BuildResult, ...]


@dataclass(frozen=True)
class Work:
    """A task, builds to be measured again, or neither; then the worker asks again after
    ``wait_s``."""

    say: Directive
    why: str
    wait_s: float
    task: Task | None = None
    again: ReplayTask | None = None


def result_of(entry: Entry) -> Result:
    """What became of a candidate just now."""
    return Result(entry.kernel, _samples(entry), _loss(entry))


def final_result(entry: Entry, sent: Mapping[str, Result]) -> FinalResult:
    """The last word on a candidate; samples that were ``sent`` are not sent again."""
    measured, known = _samples(entry), sent.get(entry.kernel)
    if known is not None and known.measured == measured:
        measured = None
    loss = None if entry.state is CandidateState.UNTRIED else _loss(entry)
    return FinalResult(entry.kernel, entry.state, entry.tied, entry.reason, measured, loss)


def _samples(entry: Entry) -> Samples | None:
    return None if entry.measurement is None else Samples.from_measurement(entry.measurement)


def _loss(entry: Entry) -> Failure | None:
    if entry.measurement is not None:
        return None
    return Failure(Stage(entry.stage or Stage.RUN), entry.reason or "it failed", entry.detail)


def as_json(value: Any) -> Any:
    """What is sent."""
    return _codec().unstructure(value)


def parse_message(data: Any, kind: type[T], what: str) -> T:
    """What was received. Raises ``UserError`` naming the field that is wrong."""
    return decode(_codec(), data, kind, what)


@cache
def _codec() -> Converter:
    return make_codec()
