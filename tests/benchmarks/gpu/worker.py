"""The process that measures: one that ends, or hangs, takes one problem with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scheduler.results.model import Results
from tests.benchmarks.gpu.apart import Apart, LostError
from tests.benchmarks.gpu.problem import Problem
from tests.benchmarks.gpu.results import Row


@dataclass(frozen=True)
class Orders:
    """What a worker measures with; see ``measuring.Settings``."""

    device_id: int
    cache: Path
    rounds: int
    tune_s: float
    tune_only: tuple[str, ...]
    results: tuple[Results, ...]
    with_compile: bool


class Worker:
    """Measures one problem after the other; started anew where it ended."""

    def __init__(self, orders: Orders) -> None:
        self._apart: Apart[str, Row] = Apart(partial(measurer, orders))

    def measured(self, problem: Problem, within_s: float) -> Row:
        """The row; one that says so where the process ended, or took longer."""
        try:
            return self._apart.answer(problem.name, within_s)
        except LostError as lost:
            return Row.lost(problem.name, str(lost), problem.bars)

    def stop(self) -> None:
        """End the process, if there is one."""
        self._apart.stop()


def measurer(orders: Orders) -> Callable[[str], Row]:
    """What measures a problem by its name, in the process that it is made in."""
    from scheduler.build.cache import CodeCache
    from scheduler.runtime import cuda
    from scheduler.runtime.nvml import Monitor
    from tests.benchmarks.gpu.making import Shop
    from tests.benchmarks.gpu.measuring import Settings, measured
    from tests.benchmarks.gpu.problems import named

    info = cuda.CudaDevice(orders.device_id).info
    shop = Shop(info.target, CodeCache(orders.cache))
    settings = Settings(
        *(shop, info, Monitor(info.attributes["pci"]), orders.rounds, orders.tune_s),
        *(orders.tune_only, orders.results, orders.with_compile),
    )
    return lambda name: measured(named(name), settings)
