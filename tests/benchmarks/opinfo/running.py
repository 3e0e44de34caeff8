"""Uses judged in processes of their own: one that dies or takes too long takes one use with it."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

import torch

from tests.benchmarks.opinfo.database import Use, dtypes_of, spread, uses
from tests.benchmarks.opinfo.judging import Tools, Verdict, judge

Key: TypeAlias = tuple[str, str, int]
_TOGETHER = 3  # types of one task where all samples run: the fewer, the better cores share them
_LONG = 384  # samples of one task, about: an op has up to thousands of a type
_LIMIT_S = 300.0  # of a stage of many uses; of one use a fifth


@dataclass(frozen=True)
class Task:
    """Samples of one op: of each of these types those at these places, None for a choice, of which
    ``share`` says the part: the first of how many, each that many after the last."""

    op: str
    samples: tuple[tuple[str, tuple[int, ...] | None], ...]
    sample: int | None = None
    share: tuple[int, int] = (0, 1)

    def uses(self) -> Iterator[Use]:
        for dtype, wanted in self.samples:
            found = list(uses(self.op, dtype))
            first, step = self.share
            chosen = spread(len(found), self.sample)[first::step] if wanted is None else wanted
            yield from (found[place] for place in chosen)


def tasks_of(
    op: str, dtypes: Sequence[str], sample: int | None, counts: Mapping[str, int]
) -> Iterator[Task]:
    """All that is asked of an op, some of its types and of their samples at a time. ``counts`` has
    how many samples there are of a type, about; a type of which nothing is known has few."""
    wanted = [dtype for dtype in dtypes_of(op) if not dtypes or dtype in dtypes]
    together = len(wanted) if sample is not None else _TOGETHER
    for start in range(0, len(wanted), together or 1):
        part = wanted[start : start + together]
        many = sum(counts.get(dtype, 0) for dtype in part) if sample is None else 0
        shares = max(1, -(-many // _LONG))
        for share in range(shares):
            yield Task(op, tuple((dtype, None) for dtype in part), sample, (share, shares))


@dataclass
class _Worker:
    """A process and what it was last heard of."""

    process: Any
    pipe: Connection
    task: Task
    due: dict[Key, None] = field(default_factory=dict)
    doing: tuple[Key, ...] = ()
    stage: str = "samples"
    heard: float = field(default_factory=time.monotonic)


def verdicts(tasks: Sequence[Task], tools: Tools, jobs: int) -> Iterator[Verdict]:
    """Verdicts as they come. The database must have been read in this process: workers are its
    forks."""
    waiting = deque(tasks)
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_started(waiting.popleft(), tools))
            wait([w.pipe for w in workers], timeout=1.0)
            for worker in list(workers):
                ended = yield from _heard(worker)
                if ended:
                    workers.remove(worker)
                    yield from _after(worker, waiting)
    finally:
        for worker in workers:
            worker.process.kill()


def _started(task: Task, tools: Tools) -> _Worker:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(task, tools, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, task)


def _work(task: Task, tools: Tools, pipe: Connection) -> None:
    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # warnings of torch's own
    chosen = list(task.uses())
    pipe.send(("due", [_key(use) for use in chosen]))

    def begin(some: Sequence[Use], stage: str) -> None:
        pipe.send(("doing", tuple(_key(use) for use in some), stage))

    try:
        for verdict in judge(chosen, replace(tools, begin=begin)):
            pipe.send(("verdict", verdict))
    except Exception:  # of the judge itself
        pipe.send(("fault", traceback.format_exc()))
    pipe.send(("end",))


def _key(use: Use) -> Key:
    return use.op, use.dtype, use.index


def _heard(worker: _Worker) -> Iterator[Verdict]:
    """Verdicts that it sent; returns whether it ended, or was ended for its time."""
    try:
        while worker.pipe.poll():
            kind, *content = worker.pipe.recv()
            worker.heard = time.monotonic()
            if kind == "due":
                worker.due = dict.fromkeys(content[0])
            elif kind == "doing":
                worker.doing, worker.stage = content
            elif kind == "verdict":
                verdict = content[0]
                worker.due.pop((verdict.op, verdict.dtype, verdict.index), None)
                yield verdict
            elif kind == "fault":
                raise RuntimeError(content[0])
            else:
                worker.stage = ""
                return True
    except EOFError:
        return True
    limit = _LIMIT_S / (5 if len(worker.doing) == 1 else 1)
    if time.monotonic() - worker.heard > limit:
        worker.process.kill()
        return True
    return False


def _after(worker: _Worker, waiting: deque[Task]) -> Iterator[Verdict]:
    """The rest of a task whose process died: whom it died of is said, others go on."""
    worker.process.join(10)
    worker.pipe.close()
    if not worker.stage:
        return
    code = worker.process.exitcode
    how = f"the process died (status {code})" if code != -9 else "takes too long, or too much"
    guilty = worker.doing
    if not worker.due:  # it died over the samples themselves
        for dtype, _ in worker.task.samples:
            yield Verdict(worker.task.op, dtype, 0, "export", f"its samples: {how}")
        return
    rest = [key for key in worker.due if key not in guilty]
    if len(guilty) == 1:
        stage = "export" if worker.stage in ("torch", "export") else worker.stage
        if guilty[0] in worker.due:
            yield Verdict(*guilty[0], stage, how)
    else:
        left = [key for key in guilty if key in worker.due]
        half = len(left) // 2
        waiting.extend(_task(part) for part in (left[:half], left[half:]) if part)
    if rest:
        waiting.append(_task(rest))


def _task(keys: Sequence[Key]) -> Task:
    places: dict[str, list[int]] = {}
    for _, dtype, index in keys:
        places.setdefault(dtype, []).append(index)
    return Task(keys[0][0], tuple((dtype, tuple(found)) for dtype, found in places.items()))
