"""Compiles candidates on several cores while others are measured."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import DEFAULT_FLAGS, Flags
from scheduler.build.model import Build
from scheduler.build.toolchains import ToolchainFor
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.sandbox.process import Cancellation
from scheduler.targets import Target


class CompilePool(Protocol):
    """Builds candidates in the order in which they are submitted."""

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        """Start, or queue, a build."""

    def close(self) -> None:
        """End running builds and drop queued ones."""


class LocalCompilePool:
    """Runs up to ``workers`` compilers at a time, each in its own process."""

    def __init__(
        self,
        target: Target,
        toolchain_for: ToolchainFor,
        cache: CodeCache,
        workers: int,
        flags: Flags = DEFAULT_FLAGS,
    ) -> None:
        self._target = target
        self._toolchain_for = toolchain_for
        self._cache = cache
        self._flags = flags
        self._cancellation = Cancellation()
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="build")

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        kernel = caller.kernel
        try:
            toolchain = self._toolchain_for(self._target, kernel.source_file)
        except MachineError:
            raise
        except UserError as error:  # no compiler on this machine takes sources of that kind
            rejected: Future[Build | Rejected] = Future()
            rejected.set_result(Rejected(Stage.COMPILE, str(error)))
            return rejected
        return self._pool.submit(
            build,
            *(kernel.source, kernel.symbol, self._target, toolchain, self._cache),
            flags=self._flags,
            cancellation=self._cancellation,
            source_file=kernel.source_file,
        )

    def close(self) -> None:
        self._cancellation.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
