"""A worker's lease on a task: sends its results to the server and keeps the lease alive."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from scheduler.agent.client import LeaseOverError, ServerClient, StoppedError, TokenError
from scheduler.agent.folder import Folder
from scheduler.agent.protocol import (
    MAX_RESULTS_PER_MESSAGE,
    Directive,
    FinalResult,
    GiveUp,
    ReplayTask,
    Reply,
    Result,
    Task,
    as_json,
    parse_message,
)
from scheduler.errors import MachineError, UserError
from scheduler.sandbox.process import Cancellation, Cancelled

_MAX_HEARTBEAT_S = 2.0  # a heartbeat also reports that the work was cancelled
_HEARTBEATS_PER_LEASE = 4

log = logging.getLogger(__name__)


class Lease:
    """The reports on a task while it is worked on. A thread sends results as they come, and
    heartbeats between them; ``cancellation`` is called once the work must stop, and ``end`` gives
    the reason."""

    def __init__(
        self, server: ServerClient, folder: Folder, lease: str, cancellation: Cancellation
    ) -> None:
        self._server = server
        self._folder = folder
        self._lease = lease
        self._cancellation = cancellation
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: list[Result] = []
        self._wake = threading.Event()
        self._done = threading.Event()
        self._failure: Exception | None = None
        self.sent: dict[str, Result] = {}
        self.end: Reply | None = None
        self.is_draining = False
        self.device = ""
        self.spent_s = 0.0  # of the budget, so far
        self.samples = (0, 0)  # of a repeated measurement: so far, and at most

    @contextmanager
    def keep_alive(self, seconds: float) -> Iterator[None]:
        """Send while the body runs; raise the error that ended the sending, such as a
        ``TokenError``."""
        thread = threading.Thread(target=self._run, args=(seconds,), name="lease")
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            self._wake.set()
            thread.join()
            if isinstance(self._failure, TokenError | StoppedError | MachineError):
                raise self._failure
            if self._failure is not None:
                raise RuntimeError(f"the server rejected it: {self._failure}") from self._failure

    def put(self, result: Result) -> None:
        """Queue a result for delivery, saved to disk first. Raises ``Cancelled`` if the task is no
        longer needed."""
        if self._cancellation.cancelled:
            raise Cancelled
        with self._lock:
            self._waiting.append(result)
            self._folder.save_journal(self._lease, self._waiting)
        self._wake.set()

    def requeue(self, results: tuple[Result, ...]) -> None:
        """Queue results of an earlier process, already on disk."""
        with self._lock:
            self._waiting.extend(results)

    def deliver(self) -> Reply:
        """Send the pending results, or a heartbeat, once; one thread at a time."""
        with self._sending:
            with self._lock:
                batch = self._waiting[:MAX_RESULTS_PER_MESSAGE]
            body = self._body(results=as_json(batch))
            try:
                answer = self._server.post("progress", body)
                reply = parse_message(answer, Reply, "the server's answer")
            except LeaseOverError as error:
                reply = Reply(Directive.STOP, str(error))
            with self._lock:
                del self._waiting[: len(batch)]
                self.sent.update((result.kernel, result) for result in batch)
                self._folder.save_journal(self._lease, self._waiting)
            return reply

    def deliver_all(self) -> None:
        """Deliver until nothing is pending or the task is no longer needed."""
        while self._waiting and self.end is None:
            self._handle_reply(self.deliver())

    def finish(
        self, lines: tuple[FinalResult, ...], rest: str = "", results: tuple[Result, ...] = ()
    ) -> None:
        """Submit the final results, and why a search left the others untried; or the ``results`` of
        a repeated measurement. Raises ``LeaseOverError`` if the lease is over."""
        body = self._body(lines=as_json(lines), rest=rest[:500], results=as_json(results))
        self._server.post("finish", body)
        self._folder.clear_journal()

    def give_up(self, why: GiveUp, reason: str = "", detail: str = "", tries: int = 3) -> None:
        """Give the task back; if the server is unreachable, the lease expires there."""
        body = {"lease": self._lease, "why": why, "reason": reason[:500], "detail": detail[:20_000]}
        with suppress(LeaseOverError, StoppedError, UserError):
            self._server.post("give-up", body, tries)
        self._folder.clear_journal()

    def _run(self, seconds: float) -> None:
        pause_s = min(seconds / _HEARTBEATS_PER_LEASE, _MAX_HEARTBEAT_S)
        while not self._done.is_set():
            try:
                self._handle_reply(self.deliver())
            except Exception as error:  # noqa: BLE001 - raised in the other thread, or logged
                self.fail(error)
            if self.end is not None:
                return
            if not self._waiting:
                self._wake.wait(pause_s)
            self._wake.clear()

    def fail(self, error: Exception) -> None:
        """End the work because a request on another thread failed with this error."""
        if not isinstance(error, LeaseOverError):
            self._failure = self._failure or error
        self._stop(Reply(Directive.STOP, str(error) or type(error).__name__))

    def _body(self, **fields: Any) -> dict[str, Any]:
        samples, max_samples = self.samples
        counts = {"spent_s": self.spent_s, "samples": samples, "samples_due": max_samples}
        return {"lease": self._lease, "device": self.device, **counts, **fields}

    def _handle_reply(self, reply: Reply) -> None:
        if reply.say in (Directive.STOP, Directive.PAUSE):
            self._stop(reply)
        self.is_draining = self.is_draining or reply.say is Directive.DRAIN

    def _stop(self, reply: Reply) -> None:
        self.end = self.end or reply
        self._cancellation.cancel()


def describe_task(task: Task | ReplayTask) -> str:
    """One line for the log."""
    if isinstance(task, ReplayTask):
        return f"{task.title} (remeasuring {len(task.repeats)} builds, {task.target})"
    scope = "search" if task.budget is not None else f"{len(task.libraries)} kernels"
    return f"{task.title or task.node} ({scope}, {task.target})"
