"""Measures builds again, side by side: each is checked first, then all take turns, so that the
device's clocks and other disturbances are the same for all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.measure import (
    Bench,
    Limits,
    Outcome,
    check_candidate,
    interrupt_on_cancel,
    sampler,
    summarise,
    wrong_result,
)
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.timing import Sampler, Samples, TimingPlan, default_plan
from scheduler.benchmark.worker import WorkerLostError
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings
from scheduler.ir.operations import Lowered
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation
from scheduler.tuning import roofline
from scheduler.tuning.evaluator import rotation_count
from scheduler.tuning.halving import screen
from scheduler.tuning.work import work_of

Progress = Callable[[int, int], None]
"""Called with the number of samples so far and the most there can be."""


def measure_interleaved(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    candidates: Mapping[str, BuiltCandidate],
    device: DeviceInfo,
    seed: int,
    progress: Progress = lambda *_: None,
    cancellation: Cancellation | None = None,
) -> dict[str, Outcome]:
    """Return a measurement, or why there is none, for each key. This process must own the device.

    Raises ``Cancelled`` once the cancellation is called.
    """
    cancellation = cancellation or Cancellation()
    work = work_of(node, lowered, bindings)
    board = device.board
    floor_ns = roofline.limit(work, board, cached=True).least_ns if board is not None else 0.0
    limits, plan = Limits(), default_plan(device.emulated)
    with (
        tempfile.TemporaryDirectory(prefix="kiln-again-") as folder,
        Bench(device.id, limits, cancellation) as bench,
        interrupt_on_cancel(cancellation, bench),
    ):
        make_case(node, lowered, bindings, np.random.default_rng(seed)).save(Path(folder))
        try:
            bench.use(Path(folder), rotation_count(work, board))
            checks = {
                key: check_candidate(bench, built, limits) for key, built in candidates.items()
            }
        except WorkerLostError as error:
            return dict.fromkeys(candidates, error.rejected)
        correct = [
            key for key, check in checks.items() if isinstance(check, Check) and check.passed
        ]
        sample = sampler(bench, candidates, limits)
        samples = _sample_rounds(correct, sample, plan, floor_ns, progress)
    outcomes: dict[str, Outcome] = {}
    for key, check in checks.items():
        timed = samples.get(key)
        if isinstance(check, Rejected):
            outcomes[key] = check
        elif timed is None:
            outcomes[key] = wrong_result(check)
        elif isinstance(timed, Rejected):
            outcomes[key] = timed
        else:
            kernel = candidates[key].request.kernel
            arguments = (kernel, device.id, bindings, timed, check, device.emulated, work.bytes)
            outcomes[key] = summarise(*arguments)
    return outcomes


def _sample_rounds(
    keys: list[str], sample: Sampler, plan: TimingPlan, floor_ns: float, progress: Progress
) -> dict[str, Samples | Rejected]:
    """Run rounds over all keys, every other one backwards, until each has enough samples."""
    results: dict[str, Samples | Rejected] = {
        key: screen(key, sample, plan, floor_ns) for key in keys
    }
    forward = True
    while unfinished := [
        key
        for key, result in results.items()
        if isinstance(result, Samples) and not plan.done(result)
    ]:
        for key in unfinished if forward else reversed(unfinished):
            samples = results[key]
            assert isinstance(samples, Samples)
            timing = sample(key, samples.batch)
            if isinstance(timing, Rejected):
                results[key] = timing
            else:
                samples.add(timing, floor_ns)
        forward = not forward
        counts = [result.count for result in results.values() if isinstance(result, Samples)]
        progress(sum(counts), plan.max_samples * len(keys))
    return results
