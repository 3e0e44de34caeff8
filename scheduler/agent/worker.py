"""A remote worker's main loop: join, take a task, measure it, submit the result, until told to
end."""

from __future__ import annotations

import logging
import os
import socket
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scheduler.agent.client import LeaseOverError, ServerClient, StoppedError, TokenError
from scheduler.agent.folder import Folder
from scheduler.agent.lease import Lease, describe_task
from scheduler.agent.measure import TaskResult, acquire_device, measure
from scheduler.agent.protocol import (
    Directive,
    GiveUp,
    ReplayTask,
    Task,
    Welcome,
    Work,
    parse_message,
)
from scheduler.agent.replay import replay
from scheduler.agent.version import PROTOCOL, generator_digest, versions
from scheduler.errors import MachineError, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe_devices
from scheduler.sandbox import sandbox_status
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.text import one_line

_LAST_WORDS_TRIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker joins. ``queue`` and ``name`` are "" for whatever the token allows; ``slot`` is
    this worker's number among the workers of one token; ``once``: end after one task."""

    queue: str = ""
    name: str = ""
    slot: int = 1
    once: bool = False
    locks: Path = Path()


class RemoteWorker:
    """A remote worker. ``stop`` is set when the process must end; its task is then given back."""

    def __init__(
        self, server: ServerClient, folder: Folder, options: WorkerOptions, stop: threading.Event
    ) -> None:
        self._server = server
        self._folder = folder
        self._options = options
        self._stop = stop
        self._cancellation = Cancellation()
        self._devices: list[DeviceInfo] = []

    def end(self) -> None:
        """Stop the work under way; may be called from any thread or signal handler."""
        self._stop.set()
        self._cancellation.cancel()

    def run(self) -> None:
        """Run until stopped or drained, or until another process joins under the same name.

        Raises ``UserError`` for an error that a person must fix, ``StoppedError`` if stopped while
        the server was unreachable.
        """
        self._join()
        self._deliver_journal()
        while not self._stop.is_set():
            answer = self._server.post("lease", {})
            work = parse_message(answer, Work, "the server's answer")
            task = work.task or work.again
            if task is not None:
                is_draining = self._run_task(task)
                if is_draining or self._options.once:
                    break
            elif work.say is Directive.DRAIN:
                log.info("drained: %s", work.why or "requested on the page Devices")
                break
            else:
                self._stop.wait(work.wait_s)
        self._server.post("leave", {}, _LAST_WORDS_TRIES)

    def _join(self) -> None:
        devices = probe_devices()
        self._devices = [device for device in devices if isinstance(device, DeviceInfo)]
        absent = [device for device in devices if not isinstance(device, DeviceInfo)]
        journal = self._folder.journal()
        body: dict[str, Any] = {
            "protocol": PROTOCOL,
            "generator": generator_digest(),
            "queue": self._options.queue,
            "name": self._options.name,
            "slot": self._options.slot,
            "host": socket.gethostname()[:120],
            "pid": os.getpid(),
            "devices": [
                {**asdict(device), "attributes": dict(device.attributes)}
                for device in self._devices
            ],
            "absent": [{"kind": device.kind, "reason": device.reason[:500]} for device in absent],
            "fence": [asdict(part) for part in sandbox_status().parts],
            "versions": versions(),
            "holds": journal.lease if journal else "",
        }
        welcome = parse_message(self._server.post("hello", body), Welcome, "the server's answer")
        self._server.session = welcome.session
        log.info("joined as %s; queues: %s", welcome.worker, " ".join(welcome.queues))

    def _deliver_journal(self) -> None:
        """Deliver what an earlier process measured, and give its task back, which may have crashed
        it."""
        journal = self._folder.journal()
        if journal is None:
            self._folder.clear_journal()
            return
        lease = Lease(self._server, self._folder, journal.lease, Cancellation())
        lease.requeue(journal.results)
        lease.deliver_all()
        if lease.end is None:
            log.info("delivered %d results of the previous process", len(journal.results))
            lease.give_up(GiveUp.DIED, "the worker process ended during this task")
        else:
            log.info("discarded the results of the previous process: %s", lease.end.why)
            self._folder.clear_journal()

    def _run_task(self, task: Task | ReplayTask) -> bool:
        """Run a task, or give it back with the reason. Return whether the worker must end
        afterwards."""
        log.info("task started: %s", describe_task(task))
        self._cancellation = cancellation = Cancellation()
        if self._stop.is_set():
            cancellation.cancel()
        lease = Lease(self._server, self._folder, task.lease, cancellation)
        self._folder.save_journal(task.lease, ())
        try:
            with lease.keep_alive(task.seconds):
                result = self._measure(task, lease, cancellation)
            lease.finish(result.lines, result.rest, result.results)
            log.info("task finished: %s", describe_task(task))
        except (Cancelled, LeaseOverError) as error:
            why = lease.end.why if lease.end else str(error)
            if lease.end is not None and lease.end.say is Directive.STOP:
                log.info("task discarded: %s", why or error)
                self._folder.clear_journal()
            else:
                log.info("task returned: %s", why or "stopped")
                lease.give_up(GiveUp.STOPPED, tries=_LAST_WORDS_TRIES)
        except StoppedError:
            log.warning("the server is unreachable: results are kept for the next start")
            raise
        except MachineError as error:
            lease.give_up(GiveUp.MACHINE, str(error))
        except TokenError:
            raise
        except UserError as error:
            lease.give_up(GiveUp.REJECTED, str(error))
        except (OSError, MemoryError) as error:
            lease.give_up(GiveUp.MACHINE, f"{type(error).__name__}: {one_line(str(error))}")
        except Exception as error:
            reason = f"internal error: {type(error).__name__}: {one_line(str(error))}"
            log.exception("%s", reason)
            lease.give_up(GiveUp.BUG, reason, traceback.format_exc())
        return lease.is_draining

    def _measure(
        self, task: Task | ReplayTask, lease: Lease, cancellation: Cancellation
    ) -> TaskResult:
        with acquire_device(
            task.device, self._devices, self._options.locks, cancellation
        ) as device:
            lease.device = device.id
            context = (self._server, self._folder, lease, device, cancellation)
            if isinstance(task, ReplayTask):
                return replay(task, *context)
            return measure(task, *context)
