"""Check and time candidates on one device, each rejection kept as data."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

from cattrs import Converter

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.child_process import WorkerLostError
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.metrics import MetricInputs, compute_metrics
from scheduler.benchmark.timing import EMULATION_PLAN, Sampler, Samples, TimingPlan
from scheduler.benchmark.worker import BenchmarkWorker
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.codec import decode, make_codec
from scheduler.runtime.device import Timing
from scheduler.sandbox.process import Cancellation, Cancelled

MAX_CRASHES = 2
# Ended by somebody else so often at one step: what the step asks for is why (memory).
MAX_KILLS = 5
_POLL_S = 0.2
T = TypeVar("T")

Outcome: TypeAlias = Measurement | Rejected


@dataclass(frozen=True)
class Limits:
    """Seconds that each step of one candidate may take."""

    load_s: float = 60.0
    check_s: float = 60.0
    run_s: float = 60.0


class Bench:
    """A worker process that is replaced when it dies; candidates are loaded on demand.

    After ``cancellation`` it begins nothing more: what is asked of it raises ``Cancelled``.
    """

    def __init__(
        self, device: str, limits: Limits, cancellation: Cancellation | None = None
    ) -> None:
        self._device = device
        self._limits = limits
        self._cancellation = cancellation or Cancellation()
        self._case: Path | None = None
        self._copies = 1
        self._worker: BenchmarkWorker | None = None
        self._loaded: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill_worker()

    def use(self, case: Path, copies: int = 1) -> None:
        """From now on work on the case that was saved in this folder.

        Raises ``WorkerLostError`` when the device cannot hold it.
        """
        self._case, self._copies = case, copies
        self._loaded.clear()
        if self._worker is not None:
            self._with_retries(lambda worker: worker.open(case, copies))

    def ask(self, candidate: BuiltCandidate, timeout_s: float, **request: Any) -> dict[str, Any]:
        """A request about one candidate, in a process that has it loaded.

        Raises ``WorkerLostError``.
        """

        def ask(worker: BenchmarkWorker) -> dict[str, Any]:
            if candidate.key not in self._loaded:
                worker.load(candidate, self._limits.load_s)
                self._loaded.add(candidate.key)
            return worker.request(timeout_s, key=candidate.key, **request)

        return self._with_retries(ask)

    def _with_retries(self, step: Callable[[BenchmarkWorker], T]) -> T:
        """Run a step in the process, in a fresh one if the last died, and again in another if
        somebody else ended it meanwhile."""
        for kills in range(1, MAX_KILLS + 1):
            if self._cancellation.cancelled:
                raise Cancelled
            try:
                return step(self._opened())
            except WorkerLostError as gone:
                self._kill_worker()
                if self._cancellation.cancelled:
                    raise Cancelled from None
                if not gone.interrupted:
                    raise
                if kills == MAX_KILLS:
                    reason = f"{gone.rejected.reason}, {MAX_KILLS} times"
                    raise WorkerLostError(replace(gone.rejected, reason=reason)) from None
        raise AssertionError("the last one raises")

    def _opened(self) -> BenchmarkWorker:
        if self._worker is None:
            assert self._case is not None, "use() a case first"
            self._worker = BenchmarkWorker(self._device)
            self._worker.open(self._case, self._copies)
        return self._worker

    def interrupt(self) -> None:
        """End the process from another thread: the request under way fails at once."""
        worker = self._worker
        if worker is not None:
            worker.interrupt()

    def _kill_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()
        self._worker = None
        self._loaded.clear()


@contextmanager
def interrupt_on_cancel(cancellation: Cancellation, bench: Bench) -> Iterator[None]:
    """End the bench's process once the cancellation is called, from any thread."""
    over = threading.Event()

    def watch() -> None:
        # More than once: a process may have been started just when it was called.
        while not over.wait(_POLL_S):
            if cancellation.cancelled:
                bench.interrupt()

    thread = threading.Thread(target=watch, name="interrupt-bench")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def check_candidate(bench: Bench, candidate: BuiltCandidate, limits: Limits) -> Check | Rejected:
    """One candidate against the reference; a crash is tried once more in a fresh process."""
    crashes: Counter[str] = Counter()
    while True:
        try:
            answer = bench.ask(candidate, limits.check_s, op="check")
        except WorkerLostError as gone:
            crashes[gone.rejected.stage] += 1
            if gone.rejected.stage is not Stage.CRASH:
                return gone.rejected
            if crashes[Stage.CRASH] >= MAX_CRASHES:
                reason = f"{gone.rejected.reason}, {MAX_CRASHES} times: quarantined"
                return Rejected(Stage.CRASH, reason, gone.rejected.detail)
        else:
            try:
                return decode(_codec(), answer.get("check"), Check, "answer")
            except UserError as error:
                return Rejected(Stage.CRASH, f"the kernel wrote into the answers: {error}")


def is_inaccurate(found: Check | Rejected) -> bool:
    """Whether a kernel ran as it should and gave numbers beyond the bound."""
    return isinstance(found, Check) and not found.passed and found.guard_intact


def wrong_result(found: Check) -> Rejected:
    """The rejection of a candidate that did not pass the gate."""
    reason = f"wrong result: error {found.max_error:.3g}, bound {found.bound:.3g}"
    return Rejected(Stage.CHECK, reason, found.detail)


def summarise(
    key: str,
    device: str,
    bindings: Mapping[str, int],
    seen: Samples,
    checked: Check,
    emulated: bool,
    moved_bytes: int = 0,
) -> Outcome:
    """The measurement behind the samples; without one possible sample there is none.

    ``moved_bytes`` are those that the problem certainly moves.
    """
    if not seen.kept:
        why = ", ".join(sorted({reason for _, reason in seen.rejected}))
        return Rejected(Stage.RUN, f"every sample was impossible: {why}")
    return Measurement(
        kernel=key,
        device=device,
        bindings=dict(bindings),
        samples_ns=tuple(seen.kept),
        batch=seen.batch,
        readings={name: tuple(values) for name, values in seen.readings.items()},
        metrics=compute_metrics(MetricInputs(seen.kept, moved_bytes, seen.readings)),
        rejected=tuple(seen.rejected),
        check=checked,
        emulated=emulated,
    )


def sampler(bench: Bench, candidates: Mapping[str, BuiltCandidate], limits: Limits) -> Sampler:
    """What takes a sample of a candidate: a batch of launches timed, or its rejection."""

    def sample(key: str, batch: int) -> Timing | Rejected:
        try:
            answer = bench.ask(candidates[key], limits.run_s, op="time", batch=batch)
        except WorkerLostError as gone:
            return gone.rejected
        try:
            return decode(_codec(), answer, Timing, "answer")
        except UserError as error:
            return Rejected(Stage.CRASH, f"the kernel wrote into the answers: {error}")

    return sample


@cache
def _codec() -> Converter:
    return make_codec()


def default_plan(emulated: bool) -> TimingPlan:
    """How long to measure on a device of that kind."""
    return EMULATION_PLAN if emulated else TimingPlan()
