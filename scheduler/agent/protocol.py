"""The protocol between a server and a worker without the database: frozen dataclasses as JSON.

The worker sends requests; the server only answers. ``as_json`` encodes the worker's messages, which
``codegen_app/remote/schemas.py`` validates; ``parse_message`` decodes the server's answers.
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
from scheduler.tuning.replay import GraphNodeRef, RecordedUse
from scheduler.tuning.warm_start import LedgerLine as ModelledLine
from scheduler.tuning.warm_start import PriorResult

T = TypeVar("T")

SESSION_HEADER = "Kiln-Worker-Session"
URL_PREFIX = "api/v1/worker"
#: Maximum number of results in one message.
MAX_RESULTS_PER_MESSAGE = 32
#: Maximum number of kernels that a search requests in one message.
MAX_KERNELS_PER_MESSAGE = 32


class Directive(StrEnum):
    """What a worker is to do next."""

    GO = "go on"
    STOP = "stop"  # the task is no longer needed: drop it
    PAUSE = "pause"  # give the task back, take none until told to go on
    DRAIN = "drain"  # finish the task, then exit


class GiveUp(StrEnum):
    """Why a worker does not finish a task."""

    STOPPED = "stopped"  # the worker was stopped or is paused; the task is not the cause
    DIED = "died"  # the process died while working on it
    MACHINE = "machine"  # the worker's machine lacks something
    REJECTED = "rejected"  # the task cannot be measured there
    BUG = "bug"  # an error in the application itself


@dataclass(frozen=True)
class Welcome:
    """``worker`` is the name given by the token; every later message carries ``session``."""

    worker: str
    session: str
    queues: tuple[str, ...]


@dataclass(frozen=True)
class Reply:
    """The next directive, and its reason."""

    say: Directive
    why: str = ""


@dataclass(frozen=True)
class Samples:
    """The underivable part of a measurement: nanoseconds per launch, and the check."""

    samples_ns: tuple[float, ...]
    batch: int
    check: Check
    rejected: tuple[tuple[float, str], ...] = ()
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @staticmethod
    def from_measurement(measured: Measurement) -> Samples:
        """Return the samples of a measurement."""
        return Samples(
            measured.samples_ns,
            measured.batch,
            measured.check,
            measured.rejected,
            measured.readings,
        )

    def measurement(
        self,
        kernel: str,
        device: str,
        bindings: Mapping[str, int],
        emulated: bool,
        moved_bytes: int = 0,
    ) -> Measurement:
        """Return the engine's measurement, with derived figures computed here. ``moved_bytes`` is
        the number of bytes that the problem must move."""
        return Measurement(
            kernel=kernel,
            device=device,
            bindings=dict(bindings),
            samples_ns=self.samples_ns,
            batch=self.batch,
            metrics=compute_metrics(MetricInputs(self.samples_ns, moved_bytes, self.readings)),
            rejected=self.rejected,
            check=self.check,
            emulated=emulated,
            readings=self.readings,
        )


@dataclass(frozen=True)
class Result:
    """The outcome of one candidate: its samples, or its loss. Results are keyed by kernel, so
    sending one again changes nothing."""

    kernel: str
    measured: Samples | None = None
    loss: Rejected | None = None


@dataclass(frozen=True)
class FinalResult:
    """The final result of one candidate. ``measured`` is None if the result sent before holds."""

    kernel: str
    state: CandidateState
    tied: bool = False
    reason: str = ""
    measured: Samples | None = None
    loss: Rejected | None = None


@dataclass(frozen=True)
class Library:
    """A kernel's built library: the key to fetch it by, and how it was built. Unless ``cached``, it
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
        """Return the engine's form, with the library in a local folder."""
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
    """A task leased to a worker; the lease expires after ``seconds`` without a heartbeat.

    ``device`` is the worker's device for the run (or another of its kind). ``seen`` are results of
    earlier attempts: their kernels are not measured again before the last rounds. With a ``budget``
    the search covers all candidates of the generator and requests builds as needed; without one the
    candidates are those of ``libraries``. ``known`` are earlier winners on similar problems,
    ``begins`` are candidates modelled before, by ``begins_with``. ``selected`` is the kernel in use
    for the problem.
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
    selected: str = ""


@dataclass(frozen=True)
class ReplayBuild:
    """A stored build to be measured again, and how to call it. ``key`` identifies its result, in
    place of a kernel's name."""

    key: str
    uses: tuple[RecordedUse, ...]
    library: Library


@dataclass(frozen=True)
class ReplayTask:
    """Stored builds of one problem, to be measured in turn on one device; leased as a ``Task`` is.

    ``problem`` is the digest to match: a node at one of the ``places`` may still have it.
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
    """The outcome of a build that a search requested: a library, or why there is none."""

    kernel: str
    library: Library | None = None
    loss: Rejected | None = None


@dataclass(frozen=True)
class BuildResults:
    """The finished builds among the requested kernels. The worker requests the others again, after
    at most ``wait_s``."""

    wait_s: float
    builds: tuple[BuildResult, ...]


@dataclass(frozen=True)
class Work:
    """A task, builds to be measured again, or neither; the worker then asks again after
    ``wait_s``."""

    say: Directive
    why: str
    wait_s: float
    task: Task | None = None
    again: ReplayTask | None = None


def result_of(key: str, outcome: Measurement | Rejected) -> Result:
    """Return the result of a candidate, or of a stored build, with that key."""
    if isinstance(outcome, Rejected):
        return Result(key, None, outcome)
    return Result(key, Samples.from_measurement(outcome))


def final_result(entry: Entry, sent: Mapping[str, Result]) -> FinalResult:
    """Return the final result of a candidate. Samples already in ``sent`` are not sent again."""
    decision = (entry.kernel, entry.state, entry.tied, entry.reason)
    if entry.state is CandidateState.UNTRIED and entry.measurement is None:
        return FinalResult(*decision)
    result, sent_result = result_of(entry.kernel, outcome_of(entry)), sent.get(entry.kernel)
    is_already_sent = sent_result is not None and sent_result.measured == result.measured
    return FinalResult(*decision, None if is_already_sent else result.measured, result.loss)


def outcome_of(entry: Entry) -> Measurement | Rejected:
    """Return the measurement of a tried candidate, or why it has none."""
    if entry.measurement is not None:
        return entry.measurement
    return Rejected(Stage(entry.stage or Stage.RUN), entry.reason or "it failed", entry.detail)


def as_json(value: Any) -> Any:
    """Encode a message."""
    return _codec().unstructure(value)


def parse_message(data: Any, kind: type[T], what: str) -> T:
    """Decode a message. Raises ``UserError`` naming the invalid field."""
    return decode(_codec(), data, kind, what)


@cache
def _codec() -> Converter:
    return make_codec()
