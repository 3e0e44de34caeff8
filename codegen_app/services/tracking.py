"""From new points to alerts: detect, explain, raise, each in transactions of its own.

What each step has to do is in the rows that the one before it wrote. A worker that is killed
anywhere, or a message that never came, leaves them for whoever looks next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from codegen_app.files import StorageAwayError
from codegen_app.services import detection, explanations, queue
from codegen_app.services.alerting import creation

log = logging.getLogger(__name__)

_STEPS: tuple[Callable[[], int], ...] = (
    detection.detect_changes,
    explanations.explain,
    creation.raise_alerts,
)


_MAX_TURNS = 30
"""Of one step before the next has its turn: where points never stop coming, alerts come all the
same. Else alerts come last, so that the series that one commit changed are told of together."""


def process_pending() -> None:
    """Do what waits, until no step finds anything."""
    while sum(_run_step(step) for step in _STEPS):
        pass


def _run_step(step: Callable[[], int]) -> int:
    """How much was done in at most ``_MAX_TURNS`` turns."""
    count = 0
    for _ in range(_MAX_TURNS):
        try:
            done = step()
        except StorageAwayError as error:  # what it did not do waits in its rows
            log.warning("%s is done later: %s", step.__name__, error)
            break
        if not done:
            break
        count += done
    return count


def has_pending() -> bool:
    """Whether a step has anything to do."""
    return (
        detection.unchecked_series().exists()
        or explanations.unexplained_changes().exists()
        or creation.pending_changes().exists()
    )


def announce() -> None:
    """Wake a worker for what waits, once the present transaction is committed."""
    if has_pending():
        queue.notify(queue.Kind.DETECT)
