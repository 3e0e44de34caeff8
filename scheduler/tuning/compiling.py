"""Compiling candidates over the cores while others are measured."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import DEFAULT, Flags
from scheduler.build.model import Build, Toolchain
from scheduler.build.process import Cancellation
from scheduler.codegen.caller import TemplateCaller
from scheduler.outcome import Rejected
from scheduler.targets import Target


class CompilePool(Protocol):
    """Builds what it is given, in the order in which it is given."""

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        """Begin, or queue, a build."""

    def close(self) -> None:
        """End what is running and drop what waits."""


class Compilers:
    """As many compilers at a time as ``workers``; the work is in their processes."""

    def __init__(
        self,
        target: Target,
        toolchain: Toolchain,
        cache: CodeCache,
        workers: int,
        flags: Flags = DEFAULT,
    ) -> None:
        self._target = target
        self._toolchain = toolchain
        self._cache = cache
        self._flags = flags
        self._cancellation = Cancellation()
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="build")

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        kernel = caller.kernel
        return self._pool.submit(
            build,
            *(kernel.source, kernel.symbol, self._target, self._toolchain, self._cache),
            flags=self._flags,
            cancellation=self._cancellation,
        )

    def close(self) -> None:
        self._cancellation.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
