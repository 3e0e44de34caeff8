"""A tuning run by modelled times: takes problems, a board, a budget and a strategy; decides each
problem.

The counterpart of ``tuning/run.py``; the command line and the application's workers call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from scheduler.benchmark.measure import default_plan
from scheduler.build.model import Build
from scheduler.cpu_count import usable_cpus
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import default_device
from scheduler.sandbox.process import Cancellation
from scheduler.targets import Target, emulation_of, find
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.evaluator import BenchEvaluator
from scheduler.tuning.modelled.gate import EmulationGate
from scheduler.tuning.modelled.tuner import ModelPool, ModelTuner, listing_of
from scheduler.tuning.problem_state import RunSettings
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.run import SearchOptions
from scheduler.tuning.tuner import Event, TuningResult

_MOST_PROCESSES = 16  # each uses some hundred MB


def emulation_for(device: DeviceInfo) -> Target:
    """Return the emulation that checks the results of kernels with modelled times. Raises
    ``UserError``."""
    emulation = emulation_of(find(device.target))
    if emulation is None:
        raise UserError(f"no emulation of {device.target}: results cannot be checked")
    return emulation


def max_model_workers() -> int:
    """Return how many processes model at a time: one per core, up to a limit."""
    return min(usable_cpus(), _MOST_PROCESSES)


def tune_modelled(
    plan: Schedule,
    problems: Sequence[TuningProblem],
    device: DeviceInfo,
    pool: CompilePool,
    emulations: CompilePool,
    models: ModelPool,
    meter: Meter,
    options: SearchOptions,
    on_event: Callable[[Event], None] = lambda _: None,
    cancellation: Cancellation | None = None,
    listing: Callable[[Build], Path] = listing_of,
) -> TuningResult:
    """Compile, check by the emulation, model and decide, within the meter's budget; pools and
    models are closed afterwards. ``listing`` returns the path of a build's listing.

    Raises ``UserError`` for an unknown strategy and if nothing emulates the target, and whatever
    ``on_event`` raises.
    """
    cancellation = cancellation or Cancellation()
    try:
        emulation = emulation_for(device)
        setting = RunSettings(
            device=device.id,
            target=find(device.target),
            emulated=False,
            plan=default_plan(emulated=True),
            board=device.board,
            seed=options.seed,
            known=options.known,
            strategy=options.strategy,
        )
        with BenchEvaluator(
            default_device(emulation),
            emulation,
            plan.lowered,
            seed=options.seed,
            cancellation=cancellation,
        ) as bench:
            gate = EmulationGate(bench, emulation, plan.lowered)
            tuner = ModelTuner(
                *(problems, setting, gate, models, pool, emulations),
                *(meter, on_event, cancellation, listing),
            )
            return tuner.run()
    finally:
        models.close()
        for each in (pool, emulations):
            each.close()
