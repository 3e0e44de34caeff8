"""Measuring kept builds again for a server: in turns, as a worker beside the database does."""

from __future__ import annotations

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Measurement
from scheduler.build.process import Cancellation, Cancelled
from scheduler.build.recipe import library_of
from scheduler.fusion.nodes import Schedule
from scheduler.joining.folder import Folder
from scheduler.joining.holding import Holding
from scheduler.joining.measuring import Handed, build_of, fetched, scheduled
from scheduler.joining.protocol import Again, Loss, Repeat, Result, Samples
from scheduler.joining.server import Server, TokenError
from scheduler.outcome import MachineError, Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.interleaved_bench import measure_interleaved
from scheduler.tuning.replay import CallSite, GraphNodeRef, find_call_site


def repeat(
    again: Again,
    server: Server,
    folder: Folder,
    holding: Holding,
    device: DeviceInfo,
    cancellation: Cancellation,
) -> Handed:
    """Fetch graphs and builds, and measure them in turns on a device that is this process's own.

    Raises ``Cancelled``; ``UserError`` where nothing of it can be measured here.
    """

    def schedule(place: GraphNodeRef) -> Schedule | None:
        try:
            file = fetched(server, folder, again, place.graph, "graph.pt2", place.graph_bytes)
        except (TokenError, MachineError):
            raise
        except UserError:  # the model was deleted: another may have the problem
            return None
        return scheduled(file)

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
    return Handed((), results=tuple(_result(key, one) for key, one in found.items()))


def _candidate(
    again: Again, one: Repeat, site: CallSite, server: Server, folder: Folder
) -> BuiltCandidate:
    request = site.request(one.library.kernel, one.uses, again.target)
    build = build_of(server, folder, again, one.library)
    return BuiltCandidate(one.key, str(library_of(build)), request)


def _result(key: str, outcome: Measurement | Rejected) -> Result:
    if isinstance(outcome, Measurement):
        return Result(key, Samples.of(outcome))
    return Result(key, None, Loss(outcome.stage, outcome.reason, outcome.detail))
