"""Measure stored builds again for a server: in turn, as a worker with the database does."""

from __future__ import annotations

from itertools import starmap

from scheduler.agent.client import ServerClient, TokenError
from scheduler.agent.folder import Folder
from scheduler.agent.lease import Lease
from scheduler.agent.measure import TaskResult, fetch_build, fetch_file, load_schedule
from scheduler.agent.protocol import ReplayTask, result_of
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Measurement
from scheduler.build.recipe import library_of
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.interleaved_bench import measure_interleaved
from scheduler.tuning.replay import GraphNodeRef, find_call_site


def replay(
    task: ReplayTask,
    server: ServerClient,
    folder: Folder,
    lease: Lease,
    device: DeviceInfo,
    cancellation: Cancellation,
) -> TaskResult:
    """Fetch graphs and builds, and measure them in turn on a device that this process has acquired.

    Raises ``Cancelled``; ``UserError`` if none of them can be measured here.
    """

    def schedule(reference: GraphNodeRef) -> Schedule | None:
        try:
            file = fetch_file(
                server, folder, task, reference.graph, "graph.pt2", reference.graph_bytes
            )
        except (TokenError, MachineError):
            raise
        except UserError:  # the model was deleted: another may have the problem
            return None
        return load_schedule(file)

    site = find_call_site(task.places, task.problem, task.sizes, schedule)
    outcomes: dict[str, Measurement | Rejected] = {}
    candidates: dict[str, BuiltCandidate] = {}
    for repeat in task.repeats:
        try:
            request = site.request(repeat.library.kernel, repeat.uses, task.target)
            library = library_of(fetch_build(server, folder, task, repeat.library))
            candidates[repeat.key] = BuiltCandidate(repeat.key, str(library), request)
        except (TokenError, MachineError):
            raise
        except UserError as error:
            outcomes[repeat.key] = Rejected(Stage.LOAD, str(error))
    folder.sweep({site.place.graph, *(repeat.library.digest for repeat in task.repeats)})
    if cancellation.cancelled:
        raise Cancelled

    def progress(samples: int, max_samples: int) -> None:
        lease.samples = (samples, max_samples)

    outcomes |= measure_interleaved(
        *(site.node, site.lowered, site.bindings, candidates, device, task.seed),
        *(progress, cancellation),
    )
    if cancellation.cancelled:
        raise Cancelled
    return TaskResult((), results=tuple(starmap(result_of, outcomes.items())))
