"""Measure a task for a server: the tuning host whose work arrives over HTTPS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from scheduler import pipeline, targets
from scheduler.agent.build_requests import RequestedBuilds
from scheduler.agent.client import ServerClient
from scheduler.agent.folder import Folder
from scheduler.agent.lease import Lease
from scheduler.agent.protocol import (
    BuildResults,
    FinalResult,
    Library,
    ReplayTask,
    Result,
    Task,
    final_result,
    outcome_of,
    parse_message,
    result_of,
)
from scheduler.build.model import Build
from scheduler.build.recipe import recipe_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.scheduling import targets_sharing_source
from scheduler.errors import Rejected, Stage, UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.lock import DeviceBusy, lock_device
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.assignment import NO_LIMIT, Assignment, PreparedSchedule, run_assignment
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.run import SearchOptions
from scheduler.tuning.tuner import Event
from scheduler.tuning.warm_start import build_warm_start

_POLL_S = 0.2
_SINGLE_TRY = 1  # requests made during the work are repeated later anyway


class FetchedBuilds:
    """A ``CompilePool`` of builds made elsewhere and already stored here: nothing is fetched during
    a measurement."""

    def __init__(self, builds: dict[str, Build]) -> None:
        self._builds = builds

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        """Return the stored build."""
        future: Future[Build | Rejected] = Future()
        future.set_result(self._builds[caller.name])
        return future

    def close(self) -> None:
        """Do nothing: no work is under way."""


class RemoteTuningHost:
    """The tuning host of a worker without the database."""

    def __init__(self, task: Task, pool: CompilePool, lease: Lease, device: DeviceInfo) -> None:
        self._task = task
        self._pool = pool
        self._lease = lease
        self._device = device

    def begin(self, _: TuningProblem) -> None:
        """Do nothing: the server knows the problem from its plan, or from analysing the graph
        itself."""

    def options(self, _: TuningProblem) -> SearchOptions:
        task, device = self._task, self._device
        earlier_failure = Rejected(Stage.RUN, "it failed before")
        return SearchOptions(
            strategy=task.strategy,
            seed=task.seed,
            known=task.known,
            selected=task.selected,
            start=build_warm_start(task.begins_with, task.begins),
            measured={
                result.kernel: result.loss or earlier_failure
                if result.measured is None
                else result.measured.measurement(
                    result.kernel, device.id, task.bindings, device.emulated
                )
                for result in task.seen
            },
        )

    def pool(self, _: TuningProblem) -> CompilePool:
        return self._pool

    def note(self, event: Event) -> None:
        self._lease.spent_s = event.seconds
        if event.entry.stage != Stage.COMPILE:  # compile results come from the server
            self._lease.put(result_of(event.entry.kernel, outcome_of(event.entry)))


def measure(
    task: Task,
    server: ServerClient,
    folder: Folder,
    lease: Lease,
    device: DeviceInfo,
    cancellation: Cancellation,
) -> TaskResult:
    """Fetch all that the task needs, then measure it on a device that this process has acquired.

    Raises ``Cancelled``; ``UserError`` if it cannot be measured here.
    """
    graph = fetch_file(server, folder, task, task.graph, "graph.pt2", task.graph_bytes)
    builds = {built.kernel: fetch_build(server, folder, task, built) for built in task.libraries}
    folder.sweep({task.graph, *(built.digest for built in task.libraries)})
    if cancellation.cancelled:
        raise Cancelled
    assignment = Assignment(
        *(task.node, task.target, task.bindings),
        frozenset(builds) if task.budget is None else None,
        task.budget or NO_LIMIT,
        waiting_counts=False,
    )

    def ask(kernels: list[str]) -> BuildResults:
        body = {"lease": task.lease, "kernels": kernels}
        return parse_message(
            server.post("builds", body, _SINGLE_TRY), BuildResults, "the server's answer"
        )

    def fetch(library: Library) -> Build:
        return fetch_build(server, folder, task, library, _SINGLE_TRY)

    # The builds of a search are requested as needed; all others are here.
    pool = FetchedBuilds(builds) if task.budget is None else RequestedBuilds(ask, fetch, lease.fail)
    with closing(pool):
        host = RemoteTuningHost(task, pool, lease, device)
        assignment_result = run_assignment(
            assignment, _prepare(graph, task.target), host, device, cancellation
        )
    lease.spent_s = assignment_result.seconds
    lease.deliver_all()
    sent = {result.kernel: result for result in task.seen} | lease.sent
    lines = tuple(final_result(entry, sent) for _, entry in assignment_result.lines)
    if task.budget is None:
        return TaskResult(lines)
    untried = [line for line in lines if line.state is CandidateState.UNTRIED]
    tried = tuple(line for line in lines if line.state is not CandidateState.UNTRIED)
    return TaskResult(tried, untried[0].reason if untried else "")


@lru_cache(maxsize=2)
def load_schedule(graph: Path) -> Schedule:
    """Return a graph file's schedule, in execution order."""
    return pipeline.schedule(pipeline.lower(pipeline.load(graph)))


@lru_cache(maxsize=2)
def _prepare(graph: Path, target: str) -> PreparedSchedule:
    schedule = load_schedule(graph)
    sharing = targets_sharing_source(targets.find(targets.names()[0]))
    return PreparedSchedule(
        schedule,
        pipeline.scheduling(schedule, sharing),
        pipeline.scheduling(schedule, (targets.find(target),)),
    )


def fetch_build(
    server: ServerClient,
    folder: Folder,
    task: Task | ReplayTask,
    library: Library,
    tries: int | None = None,
) -> Build:
    """Fetch a build's library and return the build. Raises ``UserError`` if the server has none."""
    name = recipe_of(targets.find(task.target), library.source_file).library_file
    path = fetch_file(server, folder, task, library.digest, name, library.size_bytes, tries)
    return library.build(task.target, path.parent)


def fetch_file(
    server: ServerClient,
    folder: Folder,
    task: Task | ReplayTask,
    digest: str,
    name: str,
    size: int,
    tries: int | None = None,
) -> Path:
    """Fetch a file that the lease covers. Raises ``UserError`` if the server has none."""
    path = f"leases/{task.lease}/files/{digest}"
    return folder.file(digest, name, lambda: server.fetch(path, size, tries))


@dataclass(frozen=True)
class TaskResult:
    """The submitted result of a task: the final result of each tried candidate; for a search, why
    the rest was not tried; for repeated measurements, the ``results``."""

    lines: tuple[FinalResult, ...]
    rest: str = ""
    results: tuple[Result, ...] = ()


@contextmanager
def acquire_device(
    device_id: str, available: list[DeviceInfo], locks: Path, cancellation: Cancellation
) -> Iterator[DeviceInfo]:
    """Acquire the device with that id, or a free one of its kind, for this process alone; wait
    while all are in use. Raises ``Cancelled``, and ``UserError`` if there is none."""
    preferred = next(
        (device_info for device_info in available if device_info.id == device_id), None
    )
    if preferred is None:
        raise UserError(f"device {device_id} is no longer available on this machine")
    kind = (preferred.target, preferred.name)
    same_kind = [
        device_info
        for device_info in available
        if device_info != preferred and (device_info.target, device_info.name) == kind
    ]
    while True:
        for device in (preferred, *same_kind):
            lock = lock_device(device.id, locks, wait=False)
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
        time.sleep(_POLL_S)
