"""Heartbeats of worker processes, with the devices and compilers that each found.

A heartbeat says that work can be done: a worker that is idle beside waiting work ends itself, so
that its supervisor starts it again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.platform.config import sandbox
from codegen_app.workers import compilers, controls
from codegen_app.workers.liveness import Progress, StallDetector
from codegen_app.workers.models import Worker
from codegen_app.workers.models.worker import HEARTBEAT_INTERVAL
from codegen_app.workers.queue import Kind, queue_name
from scheduler.build.model import Toolchain
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe_devices
from scheduler.sandbox import sandbox_status
from scheduler.text import one_line

log = logging.getLogger(__name__)


class WorkerHeartbeat:
    """Registers this process, then updates its row every ``HEARTBEAT_INTERVAL`` until stopped."""

    def __init__(
        self,
        name: str,
        queues: Sequence[str],
        progress: Callable[[], Progress],
        has_work: Callable[[str], bool],
    ) -> None:
        self._name = name
        self._queues = list(queues)
        self._progress = progress
        self._watch = StallDetector(queues, has_work)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start; obstacles to using devices are also written to the worker's log."""
        controls.set_worker_name(self._name)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which records that the worker stopped."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        facts: dict[str, object] = {}
        while True:
            try:
                facts = facts or self._facts()
                self._beat(facts)
            except Exception as error:  # noqa: BLE001 - a beat that fails must not be the last
                log.warning("heartbeat failed: %s", one_line(str(error)))
                self._watch.forget()
                connection.close()
            if self._over.wait(HEARTBEAT_INTERVAL.total_seconds()):
                break
        with suppress(DatabaseError):  # then its missing heartbeats show it later
            self._write({**facts, "stopped_at": timezone.now()})
        connection.close()

    def _beat(self, facts: dict[str, object]) -> None:
        if self._watch.is_stuck(self._progress(), time.monotonic()):
            log.critical("work is queued but this worker takes none: it is stuck and exits")
            os.kill(os.getpid(), signal.SIGKILL)
        self._write(facts)

    def _facts(self) -> dict[str, object]:
        if line := sandbox.uploads_disabled_reason(settings.FENCE):
            log.warning("%s", line)
        probed, torch = probe_devices(), compilers.torch_version()
        devices = [device for device in probed if isinstance(device, DeviceInfo)]
        absent = [device for device in probed if not isinstance(device, DeviceInfo)]
        for missing in absent:
            log.info("no %s device: %s", missing.kind, missing.reason)
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "queues": self._queues,
            "devices": [
                {**asdict(device), "attributes": dict(device.attributes)} for device in devices
            ],
            "absent": [{"kind": missing.kind, "reason": missing.reason} for missing in absent],
            "toolchains": [
                {
                    "name": toolchain.name,
                    "version": toolchain.version,
                    "digest": toolchain.path_digest,
                }
                if isinstance(toolchain, Toolchain)
                else {"name": toolchain.name, "absent": toolchain.reason}
                for toolchain in compilers.toolchains()
            ],
            "versions": {"torch": torch} if torch else {},
            "repositories": self._repositories(),
            "fence": [asdict(part) for part in sandbox_status().parts],
            "started_at": timezone.now(),
            "stopped_at": None,
        }

    def _repositories(self) -> list[dict[str, object]]:
        """Return the repositories whose revisions this worker builds."""
        if not settings.BISECT_COMMANDS or queue_name(Kind.BISECT) not in self._queues:
            return []
        if reason := sandbox.incomplete_reason(settings.FENCE):
            log.warning("KILN_BISECT is ignored: %s", reason)
            return []
        commands = settings.BISECT_COMMANDS.items()
        return [{"name": name, "minutes": command.minutes} for name, command in commands]

    def _write(self, facts: dict[str, object]) -> None:
        Worker.objects.update_or_create(name=self._name, defaults={**facts, "seen_at": Now()})
