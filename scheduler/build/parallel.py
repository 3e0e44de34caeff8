"""Many builds in parallel over the cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import DEFAULT_FLAGS, Flags
from scheduler.build.model import Build, Toolchain
from scheduler.errors import Rejected
from scheduler.sandbox.process import Cancellation, Limits
from scheduler.targets import Target


@dataclass(frozen=True)
class BuildRequest:
    """The arguments of one call of ``build``."""

    source: str
    name: str
    target: Target
    toolchain: Toolchain
    flags: Flags = DEFAULT_FLAGS
    source_file: str = ""


@dataclass(frozen=True)
class BuildProgress:
    """The number of builds done, the total, and the latest one: its index in the requests and its
    result."""

    done: int
    total: int
    index: int
    result: Build | Rejected


def build_all(
    requests: Sequence[BuildRequest],
    cache: CodeCache,
    workers: int,
    on_progress: Callable[[BuildProgress], None] | None = None,
    cancellation: Cancellation | None = None,
    limits: Limits = Limits(),
) -> tuple[Build | Rejected, ...]:
    """Return the results in the order of the requests; equal requests are compiled once.

    ``on_progress`` is called on the calling thread. An exception that it raises, such as
    ``Cancelled``, ends the running compilers. Threads suffice: the work is in the compilers'
    processes.
    """
    cancellation = cancellation or Cancellation()
    cache.sweep()
    indices: dict[BuildRequest, list[int]] = {}
    for index, request in enumerate(requests):
        indices.setdefault(request, []).append(index)
    results: dict[int, Build | Rejected] = {}
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="build") as pool:
        pending: dict[Future[Build | Rejected], BuildRequest] = {
            pool.submit(
                build,
                *(request.source, request.name, request.target, request.toolchain, cache),
                flags=request.flags,
                limits=limits,
                cancellation=cancellation,
                source_file=request.source_file,
            ): request
            for request in indices
        }
        try:
            while pending:
                finished, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    result = future.result()
                    for index in indices[pending.pop(future)]:
                        results[index] = result
                        if on_progress:
                            on_progress(BuildProgress(len(results), len(requests), index, result))
        except BaseException:
            cancellation.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return tuple(results[index] for index in range(len(requests)))
