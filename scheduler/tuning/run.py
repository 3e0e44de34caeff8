"""A tuning run: takes problems, a device, a budget and a strategy; decides each problem.

The command line and the application's workers both use it. They differ only in who compiles
(``CompilePool``) and in what they do with the events. On a modelled device, the times are modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.timing import default_plan
from scheduler.cpu_count import usable_cpus
from scheduler.errors import Rejected, UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import default_device
from scheduler.sandbox.process import Cancellation
from scheduler.targets import Target, emulation_of, find
from scheduler.tuning import roofline
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.evaluator import BenchEvaluator
from scheduler.tuning.measuring_timer import MeasuringTimer
from scheduler.tuning.modelled.gate import EmulationGate
from scheduler.tuning.modelled.timer import ModelTimer, ModelTools
from scheduler.tuning.problem_state import RunSettings
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY
from scheduler.tuning.tuner import Event, Timer, Tuner, TuningResult
from scheduler.tuning.warm_start import COLD_START, PriorResult, WarmStart

_MAX_MODEL_WORKERS = 16  # each uses some hundred MB


def emulation_for(device: DeviceInfo) -> Target:
    """Return the emulation that checks the results of kernels with modelled times. Raises
    ``UserError``."""
    emulation = emulation_of(find(device.target))
    if emulation is None:
        raise UserError(f"no emulation of {device.target}: results cannot be checked")
    return emulation


def max_model_workers() -> int:
    """Return how many processes model at a time: one per core, up to a limit."""
    return min(usable_cpus(), _MAX_MODEL_WORKERS)


@dataclass(frozen=True)
class SearchOptions:
    """How candidates are searched for.

    ``strategy`` is a name of the registry; ``seed`` seeds the inputs and the search. ``known`` are
    earlier winners on similar problems, ``start`` earlier modelled results. ``measured`` has, by
    kernel, the results of an earlier attempt at this run: they are not measured again before the
    last rounds. ``selected`` is the kernel in use for the problem, which is timed in turns with the
    fastest candidates in the last rounds, so that a new selection is confirmed against it; "" if
    there is none.
    """

    strategy: str = DEFAULT_STRATEGY
    seed: int = 0
    known: Sequence[PriorResult] = ()
    start: WarmStart = COLD_START
    measured: Mapping[str, Measurement | Rejected] = field(default_factory=dict)
    selected: str = ""


def tune(
    plan: Schedule,
    problems: Sequence[TuningProblem],
    device: DeviceInfo,
    pool: CompilePool,
    meter: Meter,
    options: SearchOptions,
    on_event: Callable[[Event], None] = lambda _: None,
    cancellation: Cancellation | None = None,
    model_tools: ModelTools | None = None,
) -> TuningResult:
    """Compile, check, time and decide, within the meter's budget; the pool is closed afterwards.

    With ``model_tools``, which are closed too, the times are modelled: the device is a modelled
    one. Else this process must own the device. Raises ``UserError`` for an unknown strategy and if
    nothing emulates a modelled device's target, and whatever ``on_event`` raises.
    """
    board, target = device.board, find(device.target)
    setting = RunSettings(
        device=device.id,
        target=target,
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
        selected=options.selected,
    )
    cancellation = cancellation or Cancellation()
    with ExitStack() as stack:
        stack.callback(pool.close)
        run_target, run_device, rotate_beyond = target, device.id, board
        if model_tools is not None:
            stack.callback(model_tools.close)
            run_target = emulation_for(device)
            run_device, rotate_beyond = default_device(run_target), None
        bench = stack.enter_context(
            BenchEvaluator(
                run_device,
                run_target,
                plan.lowered,
                seed=options.seed,
                board=rotate_beyond,
                cancellation=cancellation,
            )
        )
        timer: Timer
        if model_tools is None:
            timer = MeasuringTimer(bench, pool, setting.plan, meter, options.measured)
        else:
            gate = EmulationGate(bench, run_target, plan.lowered)
            timer = ModelTimer(gate, pool, model_tools, meter)
        return Tuner(problems, setting, timer, meter, on_event, cancellation).run()
