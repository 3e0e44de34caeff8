"""A thread in each worker that sends due deliveries.

A worker may compile or measure for minutes without reading messages; its thread still polls, so
that deliveries go out within seconds as long as any worker lives.
"""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, connection

from codegen_app.tracking.notifying import sender
from scheduler.text import one_line

EVERY_S = 3.0
log = logging.getLogger(__name__)


class Dispatcher:
    """Sends due deliveries every ``EVERY_S`` seconds until stopped."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        if not settings.SECRET_KEY_GIVEN:
            log.warning("this worker cannot send webhooks: KILN_SECRET_KEY is not set")
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            try:
                sender.send_due()
            except DatabaseError as error:  # the database restarts: try again later
                log.warning("nothing was sent: %s", one_line(str(error)))
                connection.close()
            except Exception:
                log.exception("reading pending deliveries failed")
                connection.close()
        connection.close()
