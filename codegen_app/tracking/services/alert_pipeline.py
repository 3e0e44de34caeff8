"""From new points to alerts: mark, detect, explain, raise, each in its own transactions; before
that, changed rules are applied to the series.

Each step's work is in the rows that the step before it wrote. After a killed worker or a lost
message, the next run continues from these rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from codegen_app.platform.files import StorageAwayError
from codegen_app.tracking.alerting import creation, machine_states, machines
from codegen_app.tracking.bisecting import walk
from codegen_app.tracking.remeasuring import suspicions
from codegen_app.tracking.rules import resolution
from codegen_app.tracking.services import detection, explanations, trunk
from codegen_app.workers import queue

log = logging.getLogger(__name__)

_STEPS: tuple[Callable[[], int], ...] = (
    trunk.mark_points,
    resolution.apply_rules,
    detection.detect_changes,
    explanations.explain,
    machines.raise_pending,
    machine_states.update_alerts,
    creation.raise_alerts,
    walk.advance,
    suspicions.request_remeasurements,
)


_MAX_TURNS = 30
"""Turns of one step before the next step runs: alerts come even if points never stop coming.
Otherwise alerts come last, so that the series that one commit changed are reported together."""


def process_pending() -> None:
    """Run the steps until none finds anything to do."""
    while sum(_run_step(step) for step in _STEPS):
        pass


def _run_step(step: Callable[[], int]) -> int:
    """Run a step at most ``_MAX_TURNS`` times; return how much was done."""
    count = 0
    for _ in range(_MAX_TURNS):
        try:
            done = step()
        except StorageAwayError as error:  # its work waits in the rows
            log.warning("%s deferred: %s", step.__name__, error)
            break
        if not done:
            break
        count += done
    return count


def has_pending() -> bool:
    """Return whether a step has anything to do."""
    return (
        trunk.repositories_to_mark().exists()
        or resolution.has_unapplied_rules()
        or detection.unchecked_series().exists()
        or explanations.unexplained_changes().exists()
        or machine_states.has_pending()
        or creation.pending_changes().exists()
        or walk.waiting_bisections().exists()
        or suspicions.unhandled_suspicions().exists()
    )


def announce() -> None:
    """Wake a worker for waiting work, once the current transaction is committed."""
    if has_pending():
        queue.notify(queue.Kind.DETECT)
