"""Every problem's kernels built before anything is timed, by processes that see no GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from scheduler.errors import UserError


@dataclass(frozen=True)
class Built:
    """``error`` says why a language's kernels were not built, by the language."""

    name: str
    seconds: float
    errors: tuple[tuple[str, str], ...]


Builder = Callable[[str, str, Path], Built]
"""Builds one problem's kernels by its name, for a target, into a cache."""


def built(
    names: Sequence[str],
    target: str,
    cache: Path,
    workers: int,
    within_s: float,
    how: Builder | None = None,
) -> Iterator[Built]:
    """Each problem as it is done, the kernels in the cache; those that are not done in time are
    left to whoever needs them. ``how`` builds one; the problems' defaults where it is not given."""
    end = time.monotonic() + within_s
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _without_gpu)
    tasks = [pool.submit(how or build, name, target, cache) for name in names]
    try:
        for task in as_completed(tasks, timeout=max(0.0, end - time.monotonic())):
            yield task.result()
    except TimeoutError:
        return
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def build(name: str, target: str, cache: Path) -> Built:
    """One problem's kernels by the defaults of each language."""
    from scheduler.build.cache import CodeCache
    from scheduler.codegen.languages import CUTEDSL_SOURCE
    from tests.benchmarks.gpu.making import Shop, in_language, made, scheduled
    from tests.benchmarks.gpu.problems import named

    started = time.monotonic()
    shop, errors = Shop(target, CodeCache(cache)), []
    plan = scheduled(named(name).load("cpu"))
    choosers = {"HIP C++": None, "CuteDSL": in_language(plan, shop, CUTEDSL_SOURCE)}
    for language, choose in choosers.items():
        if choose is None and language != "HIP C++":
            continue
        try:
            made(plan, shop, choose)
        except UserError as error:
            errors.append((language, str(error)))
    return Built(name, time.monotonic() - started, tuple(errors))


def _without_gpu() -> None:
    import torch

    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(1)
