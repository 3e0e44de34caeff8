"""Check and time candidates on one device; rejections are recorded as data."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.metrics import MetricInputs, compute_metrics
from scheduler.benchmark.timing import Sampler, Samples
from scheduler.benchmark.worker import BenchmarkWorker, WorkerLostError
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.codec import decode, default_codec
from scheduler.runtime.device import Timing
from scheduler.sandbox.process import Cancellation, Cancelled

MAX_CRASHES = 2
# After this many external kills at one step, the step itself is assumed to be the cause (memory).
MAX_KILLS = 5
_POLL_S = 0.2
T = TypeVar("T")

Outcome: TypeAlias = Measurement | Rejected


@dataclass(frozen=True)
class Limits:
    """Time limits of the steps of one candidate, in seconds."""

    load_s: float = 60.0
    check_s: float = 60.0
    run_s: float = 60.0


class Bench:
    """A worker process that is replaced when it dies; candidates are loaded on demand.

    After ``cancellation`` every request raises ``Cancelled``.
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
        """Switch to the case saved in this folder.

        Raises ``WorkerLostError`` if the device has too little memory for it.
        """
        self._case, self._copies = case, copies
        self._loaded.clear()
        if self._worker is not None:
            self._with_retries(lambda worker: worker.open(case, copies))

    def ask(self, candidate: BuiltCandidate, timeout_s: float, **request: Any) -> dict[str, Any]:
        """Send a request about one candidate, after loading it in the process if necessary.

        Raises ``WorkerLostError``.
        """

        def ask(worker: BenchmarkWorker) -> dict[str, Any]:
            if candidate.key not in self._loaded:
                worker.load(candidate, self._limits.load_s)
                self._loaded.add(candidate.key)
            return worker.request(timeout_s, key=candidate.key, **request)

        return self._with_retries(ask)

    def _with_retries(self, step: Callable[[BenchmarkWorker], T]) -> T:
        """Run a step in the process, or in a new one if the last died; retry in another if the
        process is killed from outside."""
        for kills in range(1, MAX_KILLS + 1):
            if self._cancellation.cancelled:
                raise Cancelled
            try:
                return step(self._opened())
            except WorkerLostError as error:
                self._kill_worker()
                if self._cancellation.cancelled:
                    raise Cancelled from None
                if not error.interrupted:
                    raise
                if kills == MAX_KILLS:
                    reason = f"{error.rejected.reason}, {MAX_KILLS} times"
                    raise WorkerLostError(replace(error.rejected, reason=reason)) from None
        raise AssertionError("the last one raises")

    def _opened(self) -> BenchmarkWorker:
        if self._worker is None:
            assert self._case is not None, "use() a case first"
            self._worker = BenchmarkWorker(self._device)
            self._worker.open(self._case, self._copies)
        return self._worker

    def interrupt(self) -> None:
        """Kill the process from another thread: the pending request fails at once."""
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
    """Kill the bench's process once ``cancellation`` is cancelled, from any thread."""
    finished = threading.Event()

    def watch() -> None:
        # Repeatedly: a process may have been started at the time of the cancellation.
        while not finished.wait(_POLL_S):
            if cancellation.cancelled:
                bench.interrupt()

    thread = threading.Thread(target=watch, name="interrupt-bench")
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def check_candidate(bench: Bench, candidate: BuiltCandidate, limits: Limits) -> Check | Rejected:
    """Check one candidate against the reference; retry once in a new process after a crash."""
    crashes: Counter[str] = Counter()
    while True:
        try:
            answer = bench.ask(candidate, limits.check_s, op="check")
        except WorkerLostError as error:
            crashes[error.rejected.stage] += 1
            if error.rejected.stage is not Stage.CRASH:
                return error.rejected
            if crashes[Stage.CRASH] >= MAX_CRASHES:
                reason = f"{error.rejected.reason}, {MAX_CRASHES} times: quarantined"
                return Rejected(Stage.CRASH, reason, error.rejected.detail)
        else:
            try:
                return decode(default_codec(), answer.get("check"), Check, "answer")
            except UserError as error:
                return Rejected(Stage.CRASH, f"the kernel overwrote the answer: {error}")


def is_inaccurate(result: Check | Rejected) -> bool:
    """Whether a kernel ran correctly but its results exceed the bound."""
    return isinstance(result, Check) and not result.passed and result.guard_intact


def wrong_result(check: Check) -> Rejected:
    """The rejection of a candidate that did not pass the gate."""
    reason = f"wrong result: error {check.max_error:.3g}, bound {check.bound:.3g}"
    return Rejected(Stage.CHECK, reason, check.detail)


def summarise(
    key: str,
    device: str,
    bindings: Mapping[str, int],
    samples: Samples,
    check: Check,
    emulated: bool,
    moved_bytes: int = 0,
) -> Outcome:
    """Return the measurement of the samples, or a rejection if no sample is valid.

    ``moved_bytes`` is a lower bound of the bytes that the problem moves.
    """
    if not samples.valid_ns:
        why = ", ".join(sorted({reason for _, reason in samples.rejected}))
        return Rejected(Stage.RUN, f"no valid sample: {why}")
    return Measurement(
        kernel=key,
        device=device,
        bindings=dict(bindings),
        samples_ns=tuple(samples.valid_ns),
        batch=samples.batch,
        readings={name: tuple(values) for name, values in samples.readings.items()},
        metrics=compute_metrics(MetricInputs(samples.valid_ns, moved_bytes, samples.readings)),
        rejected=tuple(samples.rejected),
        check=check,
        emulated=emulated,
    )


def sampler(bench: Bench, candidates: Mapping[str, BuiltCandidate], limits: Limits) -> Sampler:
    """Return a function that times a batch of launches of a candidate, or returns its rejection."""

    def sample(key: str, batch: int) -> Timing | Rejected:
        try:
            answer = bench.ask(candidates[key], limits.run_s, op="time", batch=batch)
        except WorkerLostError as error:
            return error.rejected
        try:
            return decode(default_codec(), answer, Timing, "answer")
        except UserError as error:
            return Rejected(Stage.CRASH, f"the kernel overwrote the answer: {error}")

    return sample
