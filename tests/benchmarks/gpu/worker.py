"""The process that measures: one that ends, or hangs, takes one problem with it."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from scheduler.results.model import Results
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
        self._orders = orders
        self._process: Any = None
        self._connection: Any = None

    def measured(self, problem: Problem, within_s: float) -> Row:
        """The row; one that says so where the process ended, or took longer."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(problem.name)
            if not self._connection.poll(within_s):
                return self._lost(problem, f"not done within {within_s:.0f} s")
            found = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(10)
            return self._lost(problem, f"the process ended with {self._process.exitcode}")
        if isinstance(found, Row):
            return found
        # What went wrong on the GPU may have left it unusable for this process.
        return self._lost(problem, found)

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _lost(self, problem: Problem, reason: str) -> Row:
        self.stop()
        return Row.lost(problem.name, reason, problem.bars)

    def _start(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._orders))
        self._process.start()
        theirs.close()


def serve(connection: Connection, orders: Orders) -> None:
    """Answers each problem's name with its row, or with what went wrong."""
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
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        try:
            answer: Row | str = measured(named(name), settings)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is this problem's
            said = " ".join(str(error).split())
            answer = f"{type(error).__name__}: {said}"[:1000]
        connection.send(answer)
