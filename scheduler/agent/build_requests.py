"""Builds that a search requests from its server while it measures the available ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from scheduler.agent.client import StoppedError
from scheduler.agent.protocol import MAX_KERNELS_PER_MESSAGE, BuildResults, Library
from scheduler.build.model import Build
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import Rejected, Stage

_FIRST_PAUSE_S = 0.1

log = logging.getLogger(__name__)


class RequestedBuilds:
    """A ``CompilePool`` backed by a server. A thread requests the pending builds, with pauses that
    grow up to the server's ``wait_s``, and fetches finished ones; it retries an unreachable server.

    ``ask`` requests kernels by name and ``fetch`` downloads a library; each raises ``StoppedError``
    if the server did not answer. Any other exception they raise goes to ``fail``, once.
    """

    def __init__(
        self,
        ask: Callable[[list[str]], BuildResults],
        fetch: Callable[[Library], Build],
        fail: Callable[[Exception], None],
    ) -> None:
        self._ask = ask
        self._fetch = fetch
        self._fail = fail
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Future[Build | Rejected]]] = {}
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._max_pause_s = _FIRST_PAUSE_S
        self._thread = threading.Thread(target=self._run, name="asked-builds")
        self._thread.start()

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        """Request a build; it is fetched once it is finished."""
        future: Future[Build | Rejected] = Future()
        with self._lock:
            self._waiting.setdefault(caller.name, []).append(future)
        self._wake.set()
        return future

    def close(self) -> None:
        """Stop waiting; may be called again."""
        self._closed.set()
        self._wake.set()
        self._thread.join()
        with self._lock:
            for futures in self._waiting.values():
                for future in futures:
                    future.cancel()
            self._waiting.clear()

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._closed.is_set():
            with self._lock:
                names = list(self._waiting)[:MAX_KERNELS_PER_MESSAGE]
            try:
                has_arrivals = bool(names) and self._poll(names)
            except StoppedError as error:
                log.debug("builds are requested again: %s", error)
                has_arrivals = False
            except Exception as error:  # noqa: BLE001 - raised on the thread that does the work
                self._fail(error)
                return
            pause_s = _FIRST_PAUSE_S if has_arrivals else min(2 * pause_s, self._max_pause_s)
            self._wake.wait(pause_s if names else None)
            self._wake.clear()

    def _poll(self, names: list[str]) -> bool:
        """Return whether anything arrived."""
        answer = self._ask(names)
        self._max_pause_s = max(answer.wait_s, _FIRST_PAUSE_S)
        for result in answer.builds:
            build: Build | Rejected | None = result.loss
            if result.library is not None:
                build = self._fetch(result.library)
            with self._lock:
                futures = self._waiting.pop(result.kernel, [])
            for future in futures:
                future.set_result(build or Rejected(Stage.COMPILE, "it was not built"))
        return bool(answer.builds)
