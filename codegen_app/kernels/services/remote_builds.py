"""A tuner's compilers: builds are requested as rows, which any worker may build."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from django.db import InterfaceError, OperationalError, connection

from codegen_app.kernels.models import Build
from codegen_app.kernels.services import builds
from codegen_app.platform import artifacts
from codegen_app.workers import work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler import targets
from scheduler.build.model import Build as Built
from scheduler.build.model import Toolchain
from scheduler.build.recipe import recipe_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import MachineError, Rejected, Stage, UserError

_POLL_S = 0.1
# A build that no other worker claimed by then is done by this process while it measures.
_UNCLAIMED_AFTER_S = 1.0

log = logging.getLogger(__name__)


class RemoteBuilds:
    """``CompilePool`` over rows. ``request`` creates (or finds) the row of a candidate's build.

    One thread polls for finished builds, another builds what no other worker takes: a host that
    only measures is never left waiting.
    """

    def __init__(self, request: Callable[[TemplateCaller], Build]) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._waiting: dict[int, list[Future[Built | Rejected]]] = {}
        self._since: dict[int, float] = {}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(step,), name=f"builds-{step.__name__}")
            for step in (self._resolve_finished, self._build_unclaimed)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, caller: TemplateCaller) -> Future[Built | Rejected]:
        """Request a build; an existing one is returned at once."""
        future: Future[Built | Rejected] = Future()
        try:
            build = self._request(caller)
        except MachineError:
            raise
        except UserError as error:  # no compiler here builds sources of that kind
            future.set_result(Rejected(Stage.COMPILE, str(error)))
            return future
        if build.state not in OPEN_STATES and (
            known_result := _result_or_request(build, cached=True)
        ):
            future.set_result(known_result)
            return future
        with self._lock:
            self._waiting.setdefault(build.pk, []).append(future)
            self._since.setdefault(build.pk, time.monotonic())
        return future

    def close(self) -> None:
        """Stop waiting; may be called again."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        with self._lock:
            for futures in self._waiting.values():
                for future in futures:
                    future.cancel()
            self._waiting.clear()

    def _run(self, step: Callable[[], None]) -> None:
        try:
            while not self._over.wait(_POLL_S):
                try:
                    step()
                except (InterfaceError, OperationalError) as error:  # the database restarts
                    log.warning("builds cannot be looked at: %s", error)
                    connection.close()
        finally:
            connection.close()

    def _resolve_finished(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
        over = Build.objects.filter(pk__in=waiting).exclude(state__in=OPEN_STATES)
        for build in over.select_related("library"):
            result = _result_or_request(build, cached=False)
            if result is None:
                continue
            with self._lock:
                futures = self._waiting.pop(build.pk, [])
            for future in futures:
                future.set_result(result)

    def _build_unclaimed(self) -> None:
        waiting_since = time.monotonic() - _UNCLAIMED_AFTER_S
        with self._lock:
            waiting = [pk for pk in self._waiting if self._since[pk] < waiting_since]
        if not waiting:
            return
        local_builds = builds.local_builds().filter(pk__in=waiting)
        if (build := work.claim_next(local_builds, work.worker_name())) is not None:
            work.attempt(build, builds.run_build)


def _result_or_request(build: Build, *, cached: bool) -> Built | Rejected | None:
    """Return ``build_result``, or None after requesting the build again if the storage lost its
    library."""
    try:
        return build_result(build, cached=cached)
    except FileNotFoundError as error:
        log.warning("build %s is done again: %s", build.pk, error)
        builds.requeue(build)
        return None


def build_result(build: Build, *, cached: bool) -> Built | Rejected:
    """Return the engine's result of a finished build, with its library on this host.

    Raises ``FileNotFoundError`` if the storage has no library, or a damaged one.
    """
    if build.state != State.DONE or build.library is None:
        reason = build.reason or "the build was cancelled"
        return Rejected(Stage.COMPILE, reason, build.log or build.detail)
    toolchain = Toolchain(build.toolchain, build.toolchain_version, build.toolchain_digest)
    source_file = build.kernel.source_file
    recipe = recipe_of(targets.find(build.target), source_file)
    return Built(
        target=build.target,
        toolchain=toolchain,
        flags=tuple(build.flags),
        source_digest=build.kernel.source_digest,
        code_digest=build.code_digest,
        duration_s=build.duration_s or 0.0,
        log=build.log,
        directory=artifacts.local_folder(build.library, recipe.library_file),
        resources=build.resources,
        cached=cached,
        source_file=source_file,
    )
