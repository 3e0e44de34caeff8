"""A remote worker's life: join, take a task, measure it, hand it in; until it is to end."""

from __future__ import annotations

import logging
import os
import socket
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scheduler.build.process import Cancellation, Cancelled
from scheduler.fence import in_force
from scheduler.joining.folder import Folder
from scheduler.joining.holding import Holding, lease_of
from scheduler.joining.measuring import Handed, held, measure
from scheduler.joining.protocol import Again, GiveUp, Say, Task, Welcome, Work, read
from scheduler.joining.repeating import repeat
from scheduler.joining.server import OverError, Server, StoppedError, TokenError
from scheduler.joining.version import PROTOCOL, generator, versions
from scheduler.outcome import MachineError, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe
from scheduler.text import one_line

_LAST_WORDS_TRIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """How a worker joins. ``queue`` and ``name`` are "" for whatever the token allows; ``slot`` is
    this worker's number among those of one token; ``once``: end after one task."""

    queue: str = ""
    name: str = ""
    slot: int = 1
    once: bool = False
    locks: Path = Path()


class RemoteWorker:
    """``stop`` is set once the process is to end: what it has is given back then."""

    def __init__(
        self, server: Server, folder: Folder, options: Options, stop: threading.Event
    ) -> None:
        self._server = server
        self._folder = folder
        self._options = options
        self._stop = stop
        self._cancellation = Cancellation()
        self._devices: list[DeviceInfo] = []

    def end(self) -> None:
        """Stop what is under way, from any thread or signal."""
        self._stop.set()
        self._cancellation.cancel()

    def run(self) -> None:
        """Until it is stopped or drained, or another process has joined under the name.

        Raises ``UserError`` for what a person must mend, ``StoppedError`` where it was stopped
        while the server was away.
        """
        self._join()
        self._settle()
        while not self._stop.is_set():
            answer = self._server.post("lease", {})
            work = read(answer, Work, "the server's answer")
            assigned = work.task or work.again
            if assigned is not None:
                drains = self._attempt(assigned)
                if drains or self._options.once:
                    break
            elif work.say is Say.DRAIN:
                log.info("drained: %s", work.why or "asked on the page of devices")
                break
            else:
                self._stop.wait(work.wait_s)
        self._leave()

    def _join(self) -> None:
        found = probe()
        self._devices = [one for one in found if isinstance(one, DeviceInfo)]
        absent = [one for one in found if not isinstance(one, DeviceInfo)]
        journal = self._folder.journal()
        body: dict[str, Any] = {
            "protocol": PROTOCOL,
            "generator": generator(),
            "queue": self._options.queue,
            "name": self._options.name,
            "slot": self._options.slot,
            "host": socket.gethostname()[:120],
            "pid": os.getpid(),
            "devices": [
                {**asdict(one), "attributes": dict(one.attributes)} for one in self._devices
            ],
            "absent": [{"kind": one.kind, "reason": one.reason[:500]} for one in absent],
            "fence": [asdict(part) for part in in_force().parts],
            "versions": versions(),
            "holds": journal.lease if journal else "",
        }
        welcome = read(self._server.post("hello", body), Welcome, "the server's answer")
        self._server.session = welcome.session
        log.info("joined as %s; queues: %s", welcome.worker, " ".join(welcome.queues))

    def _settle(self) -> None:
        """Deliver what a process of before measured; its task goes back: it may have ended it."""
        journal = self._folder.journal()
        if journal is None:
            self._folder.forget()
            return
        holding = Holding(self._server, self._folder, journal.lease, Cancellation())
        holding.put_all(journal.results)
        holding.deliver_all()
        if holding.end is None:
            log.info("%d results of before were delivered", len(journal.results))
            holding.give_up(GiveUp.DIED, "the worker's process ended while it worked on this")
        else:
            log.info("results of before are dropped: %s", holding.end.why)
            self._folder.forget()

    def _attempt(self, task: Task | Again) -> bool:
        """Do a task, or give it back and say why; whether the worker is to end then."""
        log.info("takes %s", lease_of(task))
        self._cancellation = cancellation = Cancellation()
        if self._stop.is_set():
            cancellation.cancel()
        holding = Holding(self._server, self._folder, task.lease, cancellation)
        self._folder.keep(task.lease, ())
        try:
            with holding.kept_alive(task.seconds):
                handed = self._measured(task, holding, cancellation)
            holding.finish(handed.lines, handed.rest, handed.results)
            log.info("done with %s", lease_of(task))
        except (Cancelled, OverError) as error:
            self._give_back(holding, str(error))
        except StoppedError:
            log.warning("the server is away: what was measured is kept for the next start")
            raise
        except MachineError as error:
            holding.give_up(GiveUp.MACHINE, str(error))
        except TokenError:
            raise
        except UserError as error:
            holding.give_up(GiveUp.REJECTED, str(error))
        except (OSError, MemoryError) as error:
            holding.give_up(GiveUp.MACHINE, f"{type(error).__name__}: {one_line(str(error))}")
        except Exception as error:
            reason = f"internal error: {type(error).__name__}: {one_line(str(error))}"
            log.exception("%s", reason)
            holding.give_up(GiveUp.BUG, reason, traceback.format_exc())
        return holding.drains

    def _measured(self, task: Task | Again, holding: Holding, cancellation: Cancellation) -> Handed:
        with held(task.device, self._devices, self._options.locks, cancellation) as device:
            holding.device = device.id
            around = (self._server, self._folder, holding, device, cancellation)
            return repeat(task, *around) if isinstance(task, Again) else measure(task, *around)

    def _give_back(self, holding: Holding, why: str) -> None:
        if holding.end is not None and holding.end.say is Say.STOP:
            log.info("dropped: %s", holding.end.why or why)
            self._folder.forget()
        else:
            log.info("given back: %s", holding.end.why if holding.end else why or "stopped")
            holding.give_up(GiveUp.STOPPED, tries=_LAST_WORDS_TRIES)

    def _leave(self) -> None:
        self._server.post("leave", {}, _LAST_WORDS_TRIES)
