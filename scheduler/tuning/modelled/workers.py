"""Runs the model in several worker processes at a time, each answer within a time limit."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scheduler.benchmark.worker import WorkerLostError, WorkerProcess
from scheduler.errors import Rejected, Stage
from scheduler.tuning.modelled.cache import ModelCache, key_of
from scheduler.tuning.modelled.job import ModelJob, parse_answer
from scheduler.tuning.modelled_time import ModelledTime

#: The model: a ``modelled/job.py:Model`` by its dotted name.
MODEL = "scheduler.tuning.modelled.child:model"
LIMIT_S = 60.0
_PROGRAM = "scheduler.tuning.modelled.child:make_handler"
_MEMORY_BYTES = 4 << 30


class ModelWorkers:
    """Answers from the cache, or by ``count`` processes at a time.

    A kernel that takes longer than ``limit_s`` seconds is rejected. ``close`` may be called from
    any thread and ends running work.
    """

    def __init__(
        self,
        count: int,
        cache: ModelCache | None = None,
        limit_s: float = LIMIT_S,
        model: str = MODEL,
    ) -> None:
        self._cache = cache
        self._limit_s = limit_s
        self._model = model
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="model")
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closed = False
        self.from_cache = 0

    def submit(
        self, job: ModelJob, listing: Path, code_digest: str
    ) -> Future[ModelledTime | Rejected]:
        """Model one kernel; a cached result is available at once."""
        key = key_of(job, code_digest)
        cached_answer = self._cache.get(key) if self._cache is not None else None
        modelled = cached_answer and _parse_time(cached_answer, job)
        if isinstance(modelled, ModelledTime):
            self.from_cache += 1
            finished: Future[ModelledTime | Rejected] = Future()
            finished.set_result(modelled)
            return finished
        return self._pool.submit(self._ask, job, listing, key)

    def close(self) -> None:
        """End the processes and drop queued work; may be called again."""
        with self._lock:
            self._closed = True
            for process in self._busy:
                process.interrupt()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for process in self._idle:
            process.kill()
        self._idle.clear()

    def _ask(self, job: ModelJob, listing: Path, key: str) -> ModelledTime | Rejected:
        with self._lock:
            if self._closed:
                return Rejected(Stage.MODEL, "the run ended during modelling")
            command = (_PROGRAM, "cpu", _MEMORY_BYTES, [self._model])
            process = self._idle.pop() if self._idle else WorkerProcess(*command)
            self._busy.add(process)
        try:
            with process.stage_files([listing]) as folder:
                answer = process.request(
                    self._limit_s,
                    op="model",
                    job=job.to_json(),
                    listing=str(folder / listing.name),
                )
        except WorkerLostError as error:
            with self._lock:
                self._busy.discard(process)
            process.kill()
            if self._closed:
                return Rejected(Stage.MODEL, "the run ended during modelling")
            if error.rejected.stage is Stage.TIMEOUT:
                reason = f"modelling exceeds the limit of {self._limit_s:g} s"
            else:
                reason = f"the model failed: {error.rejected.reason}"
            return Rejected(Stage.MODEL, reason, error.rejected.detail)
        with self._lock:
            self._busy.discard(process)
            self._idle.append(process)
        if "refused" in answer:
            return Rejected(Stage.MODEL, str(answer["refused"]))
        result = _parse_time(answer, job)
        if isinstance(result, ModelledTime) and self._cache is not None:
            self._cache.put(key, answer)
        return result


def _parse_time(answer: Mapping[str, Any], job: ModelJob) -> ModelledTime | Rejected:
    try:
        return parse_answer(answer, job.device)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Rejected(Stage.MODEL, f"no modelled time: {error}")
