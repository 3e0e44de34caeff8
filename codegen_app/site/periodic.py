"""The periodic round, run by a thread of whichever worker takes the turn.

It needs no process of its own, and its messages do not queue behind long work: as long as one
worker lives, the round runs. A turn is taken with one conditional UPDATE.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import threading
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.models import Q
from django.db.models.functions import Now

from codegen_app.platform.models import Round
from codegen_app.site import periodic_jobs, queued_work
from codegen_app.tracking.notifying import weekly
from codegen_app.tracking.services import rollup
from scheduler.errors import MachineError
from scheduler.text import one_line

EVERY = timedelta(seconds=5)
_MISSING_EVERY = timedelta(minutes=1)
_DIGESTS_EVERY = timedelta(minutes=1)
_EXAMINED_EVERY = timedelta(minutes=1)
_SHARED_SERIES_EVERY = timedelta(minutes=5)
_CLEANUP_EVERY = timedelta(hours=1)

log = logging.getLogger(__name__)


def take_turn(name: str, interval: timedelta) -> bool:
    """Return whether the round of that name is due, and this process takes it.

    A time in the future comes from a clock that was set back, and counts as long ago.
    """
    due = Q(begun_at__lt=Now() - interval) | Q(begun_at__gt=Now() + interval)
    if Round.objects.filter(due, name=name).update(begun_at=Now()):
        return True
    if Round.objects.filter(name=name).exists():
        return False
    _, new = Round.objects.get_or_create(name=name, defaults={"begun_at": Now()})
    return new


def run_due() -> None:
    """Run the rounds that are due."""
    # A digest, since a round's name has no room for every host's name.
    host = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:16]
    for name, interval, job in (
        ("look after", EVERY, periodic_jobs.run_maintenance),
        ("missing data", _MISSING_EVERY, periodic_jobs.check_missing_data),
        ("weekly digests", _DIGESTS_EVERY, weekly.enqueue_due),
        ("commits of alerts", _MISSING_EVERY, periodic_jobs.read_commits),
        ("recovered alerts", _CLEANUP_EVERY, periodic_jobs.close_recovered_alerts),
        ("examine series", _EXAMINED_EVERY, periodic_jobs.examine_series),
        ("shared series", _SHARED_SERIES_EVERY, periodic_jobs.check_shared_series),
        ("roll up", EVERY, rollup.roll_up_due),
        ("clear out", _CLEANUP_EVERY, periodic_jobs.clean_up),
        (f"clear out {host}", _CLEANUP_EVERY, periodic_jobs.clean_up_host),
    ):
        if take_turn(name, interval):
            job()


class PeriodicThread:
    """Tries to take a turn every ``EVERY`` until stopped; begins by announcing waiting work."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rounds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Start no more rounds."""
        self._over.set()

    def _run(self) -> None:
        # Work may have been announced before this new worker listened.
        _attempt(queued_work.notify_workers)
        while True:
            _attempt(run_due)
            if self._over.wait(EVERY.total_seconds()):
                break
        connection.close()


def _attempt(step: Callable[[], object]) -> None:
    """Run a step; a failure is one line or a traceback in the log, and the next round comes."""
    try:
        step()
    except DatabaseError as error:  # the database restarts: the next round gets through
        log.warning("a round was not done: %s", one_line(str(error)))
        connection.close()
    except MachineError as error:  # the storage is unavailable, or a disk is full
        log.warning("a round was not done: %s", error)
    except Exception:
        log.exception("a round failed")
        connection.close()
