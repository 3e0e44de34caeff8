"""A tuning run: takes problems, a device, a budget and a strategy; decides each problem.

The command line and the application's workers both use it. They differ only in who compiles
(``CompilePool``) and in what they do with the events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.benchmark.measure import default_plan
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import Rejected
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation
from scheduler.targets import find
from scheduler.tuning import roofline
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.evaluator import BenchEvaluator
from scheduler.tuning.prior_results import PriorResult
from scheduler.tuning.problem_state import RunSettings
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.resume import ResumedEvaluator
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY
from scheduler.tuning.tuner import Event, Tuner, TuningResult
from scheduler.tuning.warm_start import COLD_START, WarmStart


@dataclass(frozen=True)
class SearchOptions:
    """How candidates are searched for.

    ``strategy`` is a name of the registry; ``seed`` seeds the inputs and the search. ``known`` are
    earlier winners on similar problems, ``start`` earlier modelled results. ``measured`` has, by
    kernel, the results of an earlier attempt at this run: they are not measured again before the
    last rounds.
    """

    strategy: str = DEFAULT_STRATEGY
    seed: int = 0
    known: Sequence[PriorResult] = ()
    start: WarmStart = COLD_START
    measured: Mapping[str, Measurement | Rejected] = field(default_factory=dict)


def tune(
    plan: Schedule,
    problems: Sequence[TuningProblem],
    device: DeviceInfo,
    pool: CompilePool,
    meter: Meter,
    options: SearchOptions,
    on_event: Callable[[Event], None] = lambda _: None,
    cancellation: Cancellation | None = None,
) -> TuningResult:
    """Compile, check, time and decide, within the meter's budget; the pool is closed afterwards.

    This process must own the device. Raises ``UserError`` for an unknown strategy, and whatever
    ``on_event`` raises.
    """
    board = device.board
    setting = RunSettings(
        device=device.id,
        target=find(device.target),
        emulated=device.emulated,
        plan=default_plan(device.emulated),
        board=board,
        floors_ns={
            problem.name: roofline.limit(problem.work, board, cached=True).least_ns
            for problem in problems
            if board is not None
        },
        seed=options.seed,
        known=options.known,
        strategy=options.strategy,
        start=options.start,
    )
    with BenchEvaluator(
        device.id,
        setting.target,
        plan.lowered,
        seed=options.seed,
        board=board,
        cancellation=cancellation,
    ) as bench:
        evaluator = ResumedEvaluator(bench, options.measured)
        return Tuner(problems, setting, evaluator, pool, meter, on_event, cancellation).run()
