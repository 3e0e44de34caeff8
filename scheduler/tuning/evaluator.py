"""Checks and times candidates in a worker process, one problem at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.measure import (
    Bench,
    Limits,
    check_candidate,
    interrupt_on_cancel,
    is_inaccurate,
    sampler,
)
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.timing import Sampler
from scheduler.benchmark.worker import WorkerLostError
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import Rejected, Stage
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.operations import Lowered
from scheduler.sandbox.process import Cancellation
from scheduler.targets import Board, Target
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.work import Work

_EDGE_SIZE = 37  # a prime that fills no tile
_MAX_ROTATIONS = 16


class Evaluator(Protocol):
    """The interface through which a tuner checks and times candidates."""

    def use(self, problem: TuningProblem) -> Rejected | None:
        """Switch to this problem; return the reason if the device cannot hold it."""

    def check(self, candidate: BuiltCandidate, max_s: float) -> Check | Rejected:
        """Compare with the reference; more than ``max_s`` seconds are a timeout."""

    def check_edges(
        self, problem: TuningProblem, caller: TemplateCaller, library: str
    ) -> Rejected | None:
        """Compare at sizes that fill no tile; return the failure, or None."""

    def sampler(self, candidates: Mapping[str, BuiltCandidate], max_s: float) -> Sampler:
        """Return a sampler of candidates that passed the check."""


class BenchEvaluator:
    """Evaluates in a worker process. A context manager: the process never outlives it.

    When ``cancellation`` is called, from any thread, the process is ended at once and pending calls
    raise ``Cancelled``. With a ``board``, buffers are rotated beyond its caches.
    """

    def __init__(
        self,
        device: str,
        target: Target,
        lowered: Lowered,
        limits: Limits = Limits(),
        seed: int = 0,
        board: Board | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._target = target
        self._lowered = lowered
        self._limits = limits
        self._seed = seed
        self._board = board
        self._cancellation = cancellation or Cancellation()
        self._bench = Bench(device, limits, self._cancellation)
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-tune-")
        self._cases: dict[str, Path] = {}
        self._problem: TuningProblem | None = None
        self._rounding_sensitive = False
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        self._exit.callback(self._folder.cleanup)
        self._exit.enter_context(self._bench)
        self._exit.enter_context(interrupt_on_cancel(self._cancellation, self._bench))
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def use(self, problem: TuningProblem, *, rounding_sensitive: bool = False) -> Rejected | None:
        self._problem, self._rounding_sensitive = problem, rounding_sensitive
        try:
            case = self._case(problem, dict(problem.bindings), rounding_sensitive)
            self._bench.use(case, rotation_count(problem.work, self._board))
        except WorkerLostError as error:
            return error.rejected
        return None

    def check(self, candidate: BuiltCandidate, max_s: float) -> Check | Rejected:
        limits = replace(self._limits, check_s=min(self._limits.check_s, max(max_s, 0.1)))
        result = check_candidate(self._bench, candidate, limits)
        if self._problem is None or self._rounding_sensitive or not is_inaccurate(result):
            return result
        # From here on, each element's tolerance includes the effect of the kernel's own roundings.
        rejected = self.use(self._problem, rounding_sensitive=True)
        return rejected or check_candidate(self._bench, candidate, limits)

    def check_edges(
        self, problem: TuningProblem, caller: TemplateCaller, library: str
    ) -> Rejected | None:
        for bindings in edge_bindings(self._lowered.graph.symbols):
            if problem.identity.key(bindings) == problem.key:
                continue
            request = caller.benchmark_request(self._target.name, bindings)
            edge = BuiltCandidate("edge", library, request)
            for rounding_sensitive in (False, True):
                try:
                    self._bench.use(self._case(problem, bindings, rounding_sensitive))
                except WorkerLostError as error:
                    return error.rejected
                result = check_candidate(self._bench, edge, self._limits)
                if not is_inaccurate(result):
                    break
            if isinstance(result, Rejected):
                return result
            if not result.passed:
                sizes = format_bindings(bindings)
                reason = f"wrong result at {sizes}: error {result.max_error:.3g}"
                return Rejected(Stage.CHECK, reason, result.detail)
        return None

    def sampler(self, candidates: Mapping[str, BuiltCandidate], max_s: float) -> Sampler:
        limits = replace(self._limits, run_s=min(self._limits.run_s, max(max_s, 0.1)))
        return sampler(self._bench, candidates, limits)

    def _case(self, problem: TuningProblem, bindings: Bindings, rounding_sensitive: bool) -> Path:
        """Return the folder of the problem's case, made on first use: equal seeds give equal
        inputs."""
        key = f"{problem.node.name} {sorted(bindings.items())} {rounding_sensitive}"
        if key not in self._cases:
            folder = Path(self._folder.name) / str(len(self._cases))
            folder.mkdir()
            rng = np.random.default_rng(self._seed)
            case = make_case(
                problem.node, self._lowered, bindings, rng, with_roundings=rounding_sensitive
            )
            case.save(folder)
            self._cases[key] = folder
        return self._cases[key]


def rotation_count(work: Work, board: Board | None) -> int:
    """Return how many copies of the buffers a timing rotates through, so that a launch does not
    find its own inputs in the caches; 1 on the emulation, whose caches are not a GPU's."""
    if board is None or not work.bytes:
        return 1
    cached = board.l2_bytes + board.last_level_bytes
    return max(1, min(_MAX_ROTATIONS, 1 + cached // work.bytes))


def edge_bindings(symbols: Mapping[str, SymbolInfo]) -> tuple[Bindings, ...]:
    """Return the smallest sizes that the ranges allow, and a small prime if they allow it."""
    minimum = {name: symbol.minimum for name, symbol in symbols.items()}
    prime = {
        name: max(_EDGE_SIZE, symbol.minimum)
        if symbol.maximum is None
        else min(max(_EDGE_SIZE, symbol.minimum), symbol.maximum)
        for name, symbol in symbols.items()
    }
    return (minimum, prime) if minimum != prime else (minimum,)
