"""Signs of life of worker processes, with the devices and compilers that each of them found."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import asdict

from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.models import Worker
from codegen_app.models.worker import HEARTBEAT_INTERVAL
from codegen_app.services import compilers
from scheduler.build.model import Toolchain
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe

log = logging.getLogger(__name__)


class WorkerHeartbeat:
    """Registers this process, then updates its row every ``HEARTBEAT_INTERVAL`` until stopped."""

    def __init__(self, name: str, queues: Sequence[str]) -> None:
        self._name = name
        self._queues = list(queues)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin; what keeps devices from being used is also in the worker's log."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which records that the worker stopped."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        found = probe()
        for one in found:
            if not isinstance(one, DeviceInfo):
                log.info("no %s device: %s", one.kind, one.reason)
            facts = {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "queues": self._queues,
                "devices": [
                    {**asdict(one), "attributes": dict(one.attributes)}
                    for one in found
                    if isinstance(one, DeviceInfo)
                ],
                "absent": [
                    {"kind": one.kind, "reason": one.reason}
                    for one in found
                    if not isinstance(one, DeviceInfo)
                ],
                "toolchains": [
                    {"name": one.name, "version": one.version, "digest": one.path_digest}
                    if isinstance(one, Toolchain)
                    else {"name": one.name, "absent": one.reason}
                    for one in compilers.toolchains()
                ],
                "started_at": timezone.now(),
                "stopped_at": None,
            }
        while True:
            self._write(facts)
            if self._over.wait(HEARTBEAT_INTERVAL.total_seconds()):
                break
        self._write({**facts, "stopped_at": timezone.now()})
        connection.close()

    def _write(self, facts: dict[str, object]) -> None:
        try:
            Worker.objects.update_or_create(name=self._name, defaults={**facts, "seen_at": Now()})
        except DatabaseError as error:  # it restarts: the next sign gets through
            log.warning("no sign of life could be written: %s", error)
            connection.close()
