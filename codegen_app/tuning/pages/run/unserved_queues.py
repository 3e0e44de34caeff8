"""Why an open run waits: queues that no worker serves, and work that is retried later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from codegen_app.tuning.models import Candidate
from codegen_app.tuning.pages.runs.query import RunRow, is_open
from codegen_app.workers.live_queues import served_queues
from codegen_app.workers.models import State

_MODEL_QUEUE = "model"  # instead of a target, for runs of modelled times


def unserved_queues(run: RunRow, candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Return a line for each queue that the run needs and nobody serves (1 query; none once it is
    over)."""
    if not is_open(run.state) or run.imported:
        return ()
    if not run.planned:
        needed = {"prepare": "Planning waits"}
    else:
        target = _MODEL_QUEUE if run.modelled else run.target
        needed = {f"measure.{target}": f"{'Modelling' if run.modelled else 'Measuring'} waits"}
        # A search requests builds as it runs, which a remote worker cannot make.
        if run.strategy or any(
            row.build is not None and row.build.state == State.QUEUED for row in candidates
        ):
            needed = {"compile": "Compiling waits", **needed}
    served = served_queues()
    return tuple(
        f"{what}: no active worker serves the queue {queue} (see Devices)."
        for queue, what in needed.items()
        if queue not in served
    )


def wait_reasons(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Return each distinct reason with the number of problems or builds that it delays."""
    tasks = {row.task for row in candidates if row.task.state == State.QUEUED}
    builds = {
        row.build_id: row.build.reason
        for row in candidates
        if row.build is not None and row.build.state == State.QUEUED
    }
    counts = [
        ("problem", Counter(task.reason for task in tasks if task.reason).items()),
        ("build", Counter(filter(None, builds.values())).most_common(3)),
    ]
    return tuple(
        f"{count} {noun}{' waits' if count == 1 else 's wait'}: {reason}"
        for noun, reasons in counts
        for reason, count in reasons
    )
