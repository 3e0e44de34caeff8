"""Measure stored builds again for a server: in turn, as a worker with the database does."""

from __future__ import annotations

from scheduler.agent.client import ServerClient, TokenError
from scheduler.agent.folder import Folder
from scheduler.agent.lease import Lease
from scheduler.agent.measure import TaskResult, fetch_build, fetch_file, load_schedule
from scheduler.agent.protocol import Failure, ReplayBuild, ReplayTask, Result, Samples
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Measurement
from scheduler.build.recipe import library_of
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.interleaved_bench import measure_interleaved
from scheduler.tuning.replay import CallSite, GraphNodeRef, find_call_site


def replay(
    again: ReplayTask,
    server: ServerClient,
    folder: Folder,
    holding: Lease,
    device: DeviceInfo,
    cancellation: Cancellation,
) -> TaskResult:
    """Fetch graphs and builds, and measure them in turn on a device that this process has acquired.

    Raises ``Cancelled``; ``UserError`` if none of them can be measured here.
    """

    def schedule(place: GraphNodeRef) -> Schedule | None:
        try:
            file = fetch_file(server, folder, again, place.graph, "graph.pt2", place.graph_bytes)
        except (TokenError, MachineError):
            raise
        except UserError:  # the model was deleted: another may have the problem
            return None
        return load_schedule(file)

    site = find_call_site(again.places, again.problem, again.sizes, schedule)
    found: dict[str, Measurement | Rejected] = {}
    candidates: dict[str, BuiltCandidate] = {}
    for one in again.repeats:
        try:
            candidates[one.key] = _candidate(again, one, site, server, folder)
        except (TokenError, MachineError):
            raise
        except UserError as error:
            found[one.key] = Rejected(Stage.LOAD, str(error))
    folder.sweep({site.place.graph, *(one.library.digest for one in again.repeats)})
    if cancellation.cancelled:
        raise Cancelled

    def progress(samples: int, due: int) -> None:
        holding.samples = (samples, due)

    place = (site.node, site.lowered, site.bindings)
    found |= measure_interleaved(*place, candidates, device, again.seed, progress, cancellation)
    if cancellation.cancelled:
        raise Cancelled
    return TaskResult((), results=tuple(_result(key, one) for key, one in found.items()))


def _candidate(
    again: ReplayTask, one: ReplayBuild, site: CallSite, server: ServerClient, folder: Folder
) -> BuiltCandidate:
    request = site.request(one.library.kernel, one.uses, again.target)
    build = fetch_build(server, folder, again, one.library)
    return BuiltCandidate(one.key, str(library_of(build)), request)


def _result(key: str, outcome: Measurement | Rejected) -> Result:
    if isinstance(outcome, Measurement):
        return Result(key, Samples.from_measurement(outcome))
    return Result(key, None, Failure(outcome.stage, outcome.reason, outcome.detail))
