"""One problem, by all contenders: each result against the reference, then the times of those that
are right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from scheduler import pipeline
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.results.model import Results
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.nvml import Monitor
from tests.benchmarks.gpu.kernels import OnTorch
from tests.benchmarks.gpu.making import (
    Shop,
    Times,
    in_language,
    made,
    mixed,
    recorded,
    scheduled,
    tuned,
)
from tests.benchmarks.gpu.problem import Loaded, Problem
from tests.benchmarks.gpu.reference import bound_of, error_of, in_float64
from tests.benchmarks.gpu.results import (
    COMPILE,
    COPY,
    CUTEDSL,
    EAGER,
    KILN,
    MIXED,
    TUNED,
    Outcome,
    Row,
    judged,
    spread,
)
from tests.benchmarks.gpu.timing import timed

Call = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Settings:
    """``tune_s`` is the tuner's time for each kernel of the problems whose name has one of the
    ``tune_only`` texts, 0 for no tuning; ``results`` were recorded before, and are tuned by
    instead; ``rounds`` are the samples of each contender."""

    shop: Shop
    device: DeviceInfo
    monitor: Monitor
    rounds: int
    tune_s: float
    tune_only: tuple[str, ...]
    results: tuple[Results, ...]
    with_compile: bool


@dataclass
class _Measured:
    """The contenders of one problem, as far as they are."""

    expected: torch.Tensor
    bound: float
    calls: dict[str, Call] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def add(self, name: str, make: Callable[[], Call]) -> None:
        """Make a contender, and hold its result against the reference."""
        started = time.monotonic()
        try:
            call = make()
            got = call()
            torch.cuda.synchronize()
        except UserError as error:
            self.outcomes[name] = Outcome(wrong=str(error))
            return
        except Exception as error:
            if name != COMPILE:
                raise
            # Whatever a compiler of torch's raises says that there is no such contender here.
            said = " ".join(str(error).split())
            self.outcomes[name] = Outcome(wrong=f"{type(error).__name__}: {said}"[:1000])
            return
        took = time.monotonic() - started
        error_found = error_of(got, self.expected)
        wrong = judged(error_found, self.bound)
        self.outcomes[name] = Outcome(error_found, wrong, made_s=round(took, 3))
        if not wrong:
            self.calls[name] = call

    def times_of(self, *names: str) -> tuple[Times, Times] | None:
        """Of each kernel by two contenders of ours; None where one is missing, or has one alone."""
        first, second = (self.calls.get(name) for name in names)
        if not isinstance(first, OnTorch) or not isinstance(second, OnTorch):
            return None
        return (first.times(), second.times()) if first.launches > 1 else None


def measured(problem: Problem, settings: Settings) -> Row:
    """A row of the table. Raises what a kernel of ours did wrong beyond its result."""
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False  # a product of f32 is one of f32, for all contenders
    with torch.no_grad(), _cleared():
        loaded = problem.load("cuda")
        expected = in_float64(loaded.program, loaded.inputs)
        found = _Measured(expected, bound_of(loaded.program, _dtype(loaded), problem.roundings))
        plan = scheduled(loaded)
        shop = settings.shop
        if choose := _chooser(problem, plan, settings):
            found.add(TUNED, lambda: OnTorch(made(plan, shop, choose()), loaded))
        found.add(KILN, lambda: OnTorch(made(plan, shop), loaded))
        if (choose_language := in_language(plan, shop, CUTEDSL_SOURCE)) is not None:
            found.add(CUTEDSL, lambda: OnTorch(made(plan, shop, choose_language), loaded))
            if several := found.times_of(KILN, CUTEDSL):
                choose_faster = mixed(plan, choose_language, *several)
                found.add(MIXED, lambda: OnTorch(made(plan, shop, choose_faster), loaded))
        found.add(EAGER, lambda: lambda: loaded.module(*loaded.inputs))
        if settings.with_compile:
            found.add(COMPILE, lambda: _compiled(loaded, dynamic=problem.dynamic))
        if problem.copied_bytes:
            found.calls[COPY] = _copying(problem.copied_bytes)
            found.outcomes[COPY] = Outcome()
        del expected, found.expected
        times, readings = timed(found.calls, settings.rounds, settings.monitor)
    for name, samples in times.items():
        before = found.outcomes[name]
        found.outcomes[name] = Outcome(before.error, before.wrong, spread(samples), before.made_s)
    return Row(
        *(problem.name, problem.flops, problem.moved_bytes, found.bound, found.outcomes, readings),
        problem.bars,
    )


def _chooser(
    problem: Problem, plan: Schedule, settings: Settings
) -> Callable[[], pipeline.Chooser] | None:
    """What chooses the kernels of ``tuned``; None where that is not asked for."""
    shop, only = settings.shop, settings.tune_only
    if (known := recorded(plan, shop, settings.results)) is not None:
        return lambda: known
    if settings.tune_s and (not only or any(text in problem.name for text in only)):
        return lambda: tuned(plan, shop, settings.device, settings.tune_s)
    return None


def _compiled(loaded: Loaded, *, dynamic: bool) -> Call:
    """By torch.compile; max-autotune is for sizes that are known."""
    mode = None if dynamic else "max-autotune-no-cudagraphs"
    faster: Any = torch.compile(loaded.module, dynamic=dynamic, mode=mode)
    return lambda: faster(*loaded.inputs)


def _copying(count: int) -> Call:
    """So many bytes, each read and written."""
    source, to = (torch.empty(count, dtype=torch.uint8, device="cuda") for _ in range(2))
    return lambda: to.copy_(source)


def _dtype(loaded: Loaded) -> torch.dtype:
    """Of the result."""
    last = next(node for node in reversed(loaded.program.graph.nodes) if node.op == "output")
    found: torch.dtype = last.args[0][0].meta["val"].dtype
    return found


@contextmanager
def _cleared() -> Iterator[None]:
    """What one problem kept is given back before the next."""
    try:
        yield
    finally:
        torch._dynamo.reset()
        torch.cuda.empty_cache()
