"""Whether a worker can still take work; a heartbeat alone does not show that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from codegen_app.workers import controls

# Rounds announce waiting work every few seconds: a worker without messages for so long is stuck.
STUCK_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class Progress:
    """The number of messages that a worker has received, and whether it is working on one."""

    received: int
    busy: bool


class StallDetector:
    """Detects a worker that is idle while work waits. Times are seconds of a monotonic clock.

    ``has_work`` says whether a worker of a queue on this host could begin some waiting work now.
    """

    def __init__(self, queues: Iterable[str], has_work: Callable[[str], bool]) -> None:
        self._queues = tuple(queues)
        self._has_work = has_work
        self._received = 0
        self._idle_since: float | None = None

    def is_stuck(self, progress: Progress, now: float) -> bool:
        """Return whether work of its queues has waited all the time while it took none."""
        is_idle = not progress.busy and progress.received == self._received
        self._received = progress.received
        queues = filter(controls.may_take, self._queues)
        if not is_idle or not any(map(self._has_work, queues)):
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        return now - self._idle_since >= STUCK_AFTER.total_seconds()

    def forget(self) -> None:
        """Reset the idle time: the database was unavailable, so the time is unknown."""
        self._idle_since = None
