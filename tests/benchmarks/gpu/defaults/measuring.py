"""One shape by all contenders: each result against the reference, then the times of those that are
right."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from scheduler.build.cache import CodeCache
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime import cuda
from scheduler.runtime.nvml import Monitor
from tests.benchmarks.cycles.shapes import Shape, read
from tests.benchmarks.gpu.defaults.contenders import Contender, contenders, language
from tests.benchmarks.gpu.defaults.problem import bound_of, drawn, exact
from tests.benchmarks.gpu.defaults.results import Row, Tried
from tests.benchmarks.gpu.kernels import OnTorch
from tests.benchmarks.gpu.making import Shop, made
from tests.benchmarks.gpu.problem import Loaded
from tests.benchmarks.gpu.reference import error_of
from tests.benchmarks.gpu.results import Outcome, judged, spread
from tests.benchmarks.gpu.timing import timed


@dataclass(frozen=True)
class Orders:
    """``shapes`` is their file; ``most`` other candidates are measured beside the defaults, in
    ``rounds`` samples of each."""

    device_id: int
    cache: Path
    shapes: Path
    most: int
    rounds: int


def measurer(orders: Orders) -> Callable[[int], Row]:
    """What measures the shape at a place in the file, in the process that it is made in."""
    info = cuda.CudaDevice(orders.device_id).info
    shop = Shop(info.target, CodeCache(orders.cache))
    monitor = Monitor(info.attributes["pci"])
    shapes = read(orders.shapes)
    return lambda place: measured(shapes[place], shop, monitor, orders)


def measured(shape: Shape, shop: Shop, monitor: Monitor, orders: Orders) -> Row:
    """A row of the table. Raises what a kernel did wrong beyond its result."""
    torch.manual_seed(0)
    plan = shape.plan()
    calls: dict[str, OnTorch] = {}
    with torch.no_grad():
        problem = drawn(plan, "cuda")
        expected = exact(plan, problem.inputs)
        bound = bound_of(expected, problem.inputs[0].dtype)
        found = []
        for place, one in enumerate(contenders(plan, shop, orders.most)):
            call, outcome = _checked(plan, shop, one, problem, expected, bound)
            found.append((one, outcome))
            if call is not None:
                calls[str(place)] = call
        del expected
        times, readings = timed(calls, orders.rounds, monitor)
    calls.clear()
    torch.cuda.empty_cache()
    tried = []
    for place, (one, outcome) in enumerate(found):
        samples = times.get(str(place))
        time_us = spread(samples) if samples else None
        told = Outcome(outcome.error, outcome.wrong, time_us, outcome.made_s)
        tried.append(Tried(one.language, one.title, one.default, told))
    chosen = language(plan, shop.target)
    return Row(shape.name, shape.of, bound, tuple(tried), readings, language=chosen)


def _checked(
    plan: Schedule,
    shop: Shop,
    one: Contender,
    problem: Loaded,
    expected: torch.Tensor,
    bound: float,
) -> tuple[OnTorch | None, Outcome]:
    """The contender ready to be timed, if its result is right."""
    started = time.monotonic()
    try:
        call = OnTorch(made(plan, shop, one.choose), problem)
    except UserError as error:
        return None, Outcome(wrong=str(error))
    error = error_of(call(), expected)
    torch.cuda.synchronize()
    wrong = judged(error, bound)
    outcome = Outcome(error, wrong, made_s=round(time.monotonic() - started, 3))
    return (None if wrong else call), outcome
