"""Whether a worker can still take work; a heartbeat alone does not show that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from codegen_app.services import (
    backlog,
    builds,
    controls,
    ledger,
    torch_comparisons,
    tracking,
    work,
)
from codegen_app.services.queue import Kind, queue_name
from codegen_app.services.remeasuring import jobs as remeasuring

# Rounds announce waiting work every few seconds: a worker without messages for so long is stuck.
STUCK_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class Progress:
    """The number of messages that a worker has received, and whether it is working on one."""

    received: int
    busy: bool


class StallDetector:
    """Detects a worker that is idle while work waits. Times are seconds of a monotonic clock."""

    def __init__(self, queues: Iterable[str]) -> None:
        self._queues = tuple(queues)
        self._received = 0
        self._idle_since: float | None = None

    def is_stuck(self, progress: Progress, now: float) -> bool:
        """Return whether work of its queues has waited all the time while it took none."""
        idle = not progress.busy and progress.received == self._received
        self._received = progress.received
        if not idle or not any(has_work(one) for one in self._queues if controls.may_take(one)):
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        return now - self._idle_since >= STUCK_AFTER.total_seconds()

    def forget(self) -> None:
        """Reset the idle time: the database was unavailable, so the time is unknown."""
        self._idle_since = None


def has_work(queue: str) -> bool:
    """Return whether a worker of that queue on this host could begin some waiting work now."""
    if queue == queue_name(Kind.DETECT):
        return tracking.has_pending()
    return any(rows.exists() for rows in _local_rows(queue))


def _local_rows(queue: str) -> tuple[backlog.Rows, ...]:
    """Return the rows of ``backlog.py``, restricted to work that this host can do."""
    if queue == queue_name(Kind.PREPARE):
        return *backlog.prepare_backlog_without_torch(), work.due_rows(
            torch_comparisons.queued_comparisons()
        )
    if queue == queue_name(Kind.COMPILE):
        return work.due_rows(builds.local_builds()), *backlog.compile_backlog_without_builds()
    prefix = queue_name(Kind.MEASURE, "")
    if queue.startswith(prefix):
        target = queue.removeprefix(prefix)
        return work.due_rows(ledger.ready_tasks(target)), work.due_rows(
            remeasuring.queued_remeasurements(target)
        )
    return ()
