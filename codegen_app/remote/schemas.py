"""What remote workers may send: every field bounded, every number finite, nothing else beside."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, FiniteFloat

from scheduler.agent.protocol import (
    MAX_KERNELS_PER_MESSAGE,
    MAX_RESULTS_PER_MESSAGE,
    FinalResult,
    GiveUp,
    Result,
    Samples,
)
from scheduler.benchmark.measurement import Check
from scheduler.errors import Rejected, Stage
from scheduler.tuning.ledger import CandidateState

_MAX_SAMPLES = 2_000
_MAX_LINES = 2_000
_MAX_DEVICES = 64
_MAX_REPEATS = 64
_MAX_BYTES = 2**60

_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"  # one line
_STORABLE = r"^[^\x00]*$"  # what the database keeps in a text

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=_PRINTABLE)]
Reason = Annotated[str, Field(max_length=500, pattern=_STORABLE)]
Detail = Annotated[str, Field(max_length=20_000, pattern=_STORABLE)]
Kernel = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\w+$")]
Key = Annotated[str, Field(min_length=32, max_length=32, pattern=r"^[0-9a-f]+$")]
DeviceId = Annotated[str, Field(max_length=32, pattern=r"^[\w.:-]*$")]
Nanoseconds = Annotated[FiniteFloat, Field(gt=0, le=1e15)]
Error = Annotated[FiniteFloat, Field(ge=0)]
Seconds = Annotated[FiniteFloat, Field(ge=0, le=1e9)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Text = Annotated[str, Field(max_length=200, pattern=_PRINTABLE)]


class Strict(Schema):
    """A strict schema: no conversion of types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SentCheck(Strict):
    """The result of a passed check. A failed check has no measurement."""

    passed: Literal[True]
    max_error: Error
    bound: Error
    ratio: Annotated[FiniteFloat, Field(ge=0, le=1)]
    guard_intact: Literal[True]
    detail: Detail = ""


class SentSamples(Strict):
    """Times in nanoseconds per launch."""

    samples_ns: Annotated[list[Nanoseconds], Field(min_length=1, max_length=_MAX_SAMPLES)]
    batch: Annotated[int, Field(ge=1, le=10**6)]
    check: SentCheck
    rejected: Annotated[
        list[Annotated[list[FiniteFloat | Reason], Field(min_length=2, max_length=2)]],
        Field(max_length=_MAX_SAMPLES),
    ] = []
    readings: Annotated[
        dict[Kernel, Annotated[list[FiniteFloat], Field(max_length=_MAX_SAMPLES)]],
        Field(max_length=16),
    ] = {}

    def samples(self) -> Samples:
        """Convert to the protocol type. Raises ``ValueError``."""
        pairs = []
        for pair in self.rejected:
            ns, reason = pair
            if isinstance(ns, str) or not isinstance(reason, str):
                raise ValueError("rejected: requires a time and a reason")
            pairs.append((float(ns), reason))
        return Samples(
            tuple(map(float, self.samples_ns)),
            self.batch,
            Check(**self.check.model_dump()),
            tuple(pairs),
            {name: tuple(map(float, values)) for name, values in self.readings.items()},
        )


class SentLoss(Strict):
    """The reason why a candidate has no measurement."""

    stage: Literal["compile", "load", "check", "run", "timeout", "crash", "render"]
    reason: Annotated[str, Field(min_length=1, max_length=2_000, pattern=_STORABLE)]
    detail: Detail = ""

    def loss(self) -> Rejected:
        """Convert to the protocol type."""
        return Rejected(Stage(self.stage), self.reason, self.detail)


class SentResult(Strict):
    """The result of a candidate: samples or a loss."""

    kernel: Kernel
    measured: SentSamples | None
    loss: SentLoss | None

    def result(self) -> Result:
        """Convert to the protocol type. Raises ``ValueError``."""
        if (self.measured is None) == (self.loss is None):
            raise ValueError(f"{self.kernel}: requires either samples or a loss")
        return Result(
            self.kernel,
            self.measured.samples() if self.measured else None,
            self.loss.loss() if self.loss else None,
        )


class SentLine(Strict):
    """The final result of a candidate. Without samples, the samples sent earlier apply."""

    kernel: Kernel
    state: Annotated[str, Field(max_length=20)]
    tied: bool
    reason: Annotated[str, Field(max_length=2_000, pattern=_STORABLE)]
    measured: SentSamples | None
    loss: SentLoss | None

    def line(self) -> FinalResult:
        """Convert to the protocol type. Raises ``ValueError``."""
        state = CandidateState(self.state)
        timed = state in (CandidateState.CHOSEN, CandidateState.MEASURED)
        if not timed and (self.measured is not None or self.tied):
            raise ValueError(f"{self.kernel}: {state} must not have samples or ties")
        if (self.loss is not None) == (timed or state is CandidateState.UNTRIED):
            raise ValueError(f"{self.kernel}: {state}: the loss is missing or not allowed")
        return FinalResult(
            self.kernel,
            state,
            self.tied,
            self.reason,
            self.measured.samples() if self.measured else None,
            self.loss.loss() if self.loss else None,
        )


class SentDevice(Strict):
    """A device of the worker."""

    id: DeviceId
    target: Annotated[str, Field(max_length=24, pattern=r"^[\w.-]+$")]
    name: Name
    driver: Text
    runtime: Text
    compute_units: Annotated[int, Field(ge=0, le=10**6)]
    memory_bytes: Annotated[int, Field(ge=0, le=_MAX_BYTES)]
    emulated: bool
    attributes: Annotated[
        dict[Text, Annotated[str, Field(max_length=2_000, pattern=_PRINTABLE)]],
        Field(max_length=64),
    ]


class SentAbsent(Strict):
    """A kind of device that is unavailable, with the reason."""

    kind: Text
    reason: Reason


class SentFence(Strict):
    """A part of the worker's sandbox."""

    name: Text
    in_force: bool
    note: Annotated[str, Field(max_length=2_000, pattern=_STORABLE)]
    needed: bool


class Hello(Strict):
    """The joining worker: versions, devices, and the leases of its earlier process."""

    protocol: int
    generator: Annotated[str, Field(max_length=128, pattern=r"^[0-9a-f]+$")]
    queue: Annotated[str, Field(max_length=40, pattern=r"^[\w.-]*$")] = ""
    name: Annotated[str, Field(max_length=60, pattern=_PRINTABLE)] = ""
    slot: Annotated[int, Field(ge=1, le=64)] = 1
    host: Annotated[str, Field(max_length=120, pattern=_PRINTABLE)]
    pid: Annotated[int, Field(ge=1, le=2**31 - 1)]
    devices: Annotated[list[SentDevice], Field(max_length=_MAX_DEVICES)]
    absent: Annotated[list[SentAbsent], Field(max_length=_MAX_DEVICES)] = []
    fence: Annotated[list[SentFence], Field(max_length=_MAX_DEVICES)] = []
    versions: Annotated[dict[Text, Text], Field(max_length=16)] = {}
    holds: Annotated[str, Field(max_length=32, pattern=r"^[0-9a-f]*$")] = ""


class Empty(Strict):
    """An empty body."""


class Progress(Strict):
    """New results; none for a heartbeat. ``samples`` of at most ``samples_due`` samples of a
    re-measurement are taken."""

    lease: Key
    device: DeviceId
    results: Annotated[list[SentResult], Field(max_length=MAX_RESULTS_PER_MESSAGE)]
    spent_s: Seconds | None = None
    samples: Count = 0
    samples_due: Count = 0


class Finish(Strict):
    """The decision: a line for each candidate. For a search, a line for each tried candidate, and
    ``rest`` with the reason for the others. ``spent_s``: seconds of work so far. A re-measurement
    has only ``results``, one for each point."""

    lease: Key
    device: DeviceId
    lines: Annotated[list[SentLine], Field(max_length=_MAX_LINES)]
    rest: Reason = ""
    spent_s: Seconds | None = None
    results: Annotated[list[SentResult], Field(max_length=_MAX_REPEATS)] = []
    samples: Count = 0
    samples_due: Count = 0


class Asking(Strict):
    """The kernels to try next in a search."""

    lease: Key
    kernels: Annotated[list[Kernel], Field(max_length=MAX_KERNELS_PER_MESSAGE)]


class GivingUp(Strict):
    """The reason why the task is not finished."""

    lease: Key
    why: Literal["stopped", "died", "machine", "rejected", "bug"]
    reason: Reason = ""
    detail: Detail = ""

    def because(self) -> GiveUp:
        """Convert to the protocol type."""
        return GiveUp(self.why)


class WelcomeAnswer(Schema):
    """The name of the worker, its session for the header, and its queues."""

    worker: str
    session: str
    queues: list[str]


class WorkAnswer(Schema):
    """A task or builds to re-measure, with the digests of the files; or neither, with the time to
    wait before the next request."""

    say: str = Field(description="“go on”, “pause” or “drain”.")
    why: str
    wait_s: float
    task: dict[str, Any] | None = Field(description="scheduler/agent/protocol.py: Task.")
    again: dict[str, Any] | None = Field(description="scheduler/agent/protocol.py: ReplayTask.")


class BuildsAnswer(Schema):
    """Finished and failed builds. Request the others again after ``wait_s``."""

    wait_s: float
    builds: list[dict[str, Any]] = Field(description="scheduler/agent/protocol.py: BuildResult.")


class ReplyAnswer(Schema):
    """The next action."""

    say: str = Field(description="“go on”, “stop”, “pause” or “drain”.")
    why: str


class Fine(Schema):
    """The request succeeded."""

    ok: Literal[True] = True
