"""Measuring a task for a server: the desk whose work comes over HTTPS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from scheduler import pipeline, targets
from scheduler.benchmark.measurement import Measurement
from scheduler.build.model import Build
from scheduler.build.process import Cancellation, Cancelled
from scheduler.build.recipe import recipe_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.scheduling import served_together
from scheduler.joining.folder import Folder
from scheduler.joining.holding import Holding
from scheduler.joining.protocol import Library, Line, Result, Task, line_of, result_of
from scheduler.joining.server import Server
from scheduler.outcome import Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.lock import DeviceBusy, exclusive
from scheduler.tuning.assignment import Assignment, Prepared, work_on
from scheduler.tuning.compiling import CompilePool
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.run import SearchOptions
from scheduler.tuning.tuner import Event

_LOOK_S = 0.2


class Fetched:
    """``CompilePool`` of what was built elsewhere and lies here: nothing is fetched beside a
    measurement."""

    def __init__(self, builds: dict[str, Build]) -> None:
        self._builds = builds

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        """What is there already."""
        future: Future[Build | Rejected] = Future()
        future.set_result(self._builds[caller.name])
        return future

    def close(self) -> None:
        """Nothing is under way."""


class RemoteDesk:
    """The desk of a worker without the database."""

    def __init__(
        self, task: Task, builds: dict[str, Build], holding: Holding, device: DeviceInfo
    ) -> None:
        self._task = task
        self._builds = builds
        self._holding = holding
        self._device = device

    def begin(self, _: TuningProblem) -> None:
        """The server knows it from its plan."""

    def options(self, _: TuningProblem) -> SearchOptions:
        task = self._task
        seen = {one.kernel: self._seen(one) for one in task.seen}
        return SearchOptions(strategy=task.strategy, seed=task.seed, measured=seen)

    def pool(self, _: TuningProblem) -> CompilePool:
        return Fetched(self._builds)

    def note(self, event: Event) -> None:
        self._holding.put(result_of(event.entry))

    def _seen(self, one: Result) -> Measurement | Rejected:
        if one.measured is None:
            return one.loss.rejected if one.loss else Rejected(Stage.RUN, "it failed before")
        device = self._device
        return one.measured.measurement(one.kernel, device.id, self._task.bindings, device.emulated)


def measure(
    task: Task,
    server: Server,
    folder: Folder,
    holding: Holding,
    device: DeviceInfo,
    cancellation: Cancellation,
) -> tuple[Line, ...]:
    """Fetch all that the task needs, then measure it on a device that is this process's own.

    Raises ``Cancelled``; ``UserError`` where it cannot be measured here.
    """
    graph = _fetched(server, folder, task, task.graph, "graph.pt2", task.graph_bytes)
    builds = {one.kernel: _build(server, folder, task, one) for one in task.libraries}
    folder.sweep({task.graph, *(one.digest for one in task.libraries)})
    if cancellation.cancelled:
        raise Cancelled
    assignment = Assignment(task.node, task.target, task.bindings, frozenset(builds))
    desk = RemoteDesk(task, builds, holding, device)
    decided = work_on(assignment, _prepared(graph, task.target), desk, device, cancellation)
    holding.deliver_all()
    sent = {one.kernel: one for one in task.seen} | holding.sent
    return tuple(line_of(entry, sent) for _, entry in decided.lines)


@lru_cache(maxsize=2)
def _prepared(graph: Path, target: str) -> Prepared:
    schedule = pipeline.schedule(pipeline.lower(pipeline.load(graph)))
    every = served_together(targets.find(targets.names()[0]))
    return Prepared(
        schedule,
        pipeline.scheduling(schedule, every),
        pipeline.scheduling(schedule, (targets.find(target),)),
    )


def _build(server: Server, folder: Folder, task: Task, library: Library) -> Build:
    name = recipe_of(targets.find(task.target), library.source_file).library_file
    place = _fetched(server, folder, task, library.digest, name, library.size_bytes)
    return library.build(task.target, place.parent)


def _fetched(server: Server, folder: Folder, task: Task, digest: str, name: str, size: int) -> Path:
    path = f"leases/{task.lease}/files/{digest}"
    return folder.file(digest, name, lambda: server.fetch(path, size))


@contextmanager
def held(
    device_id: str, here: list[DeviceInfo], locks: Path, cancellation: Cancellation
) -> Iterator[DeviceInfo]:
    """The device of that id, or another of its kind that is free, for this process alone; waits
    while all are in use. Raises ``Cancelled``, and ``UserError`` where there is none."""
    own = next((one for one in here if one.id == device_id), None)
    if own is None:
        raise UserError(f"device {device_id}: no such device here any more")
    kind = (own.target, own.name)
    alike = [own, *(one for one in here if one != own and (one.target, one.name) == kind)]
    while True:
        for device in alike:
            lock = exclusive(device.id, locks, wait=False)
            try:
                lock.__enter__()
            except DeviceBusy:
                continue
            try:
                yield device
            finally:
                lock.__exit__(None, None, None)
            return
        if cancellation.cancelled:
            raise Cancelled
        time.sleep(_LOOK_S)
