"""The part of ``tune`` that finds the device and searches on it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import gettempdir

from scheduler.build.flags import parse_flags
from scheduler.commands import options
from scheduler.cpu_count import usable_cpus
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import modelled_device, open_device
from scheduler.runtime.isa_device import require_timing
from scheduler.runtime.lock import lock_device
from scheduler.targets import Target, find
from scheduler.targets.modelled import is_modelled
from scheduler.tuning.budget import Meter, parse_seconds
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.modelled.cache import ModelCache
from scheduler.tuning.modelled.timer import ModelTools
from scheduler.tuning.modelled.workers import ModelWorkers
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.run import SearchOptions, emulation_for, max_model_workers, tune
from scheduler.tuning.tuner import Event, TuningResult
from scheduler.tuning.warm_start import COLD_START, WarmStart, read_prior_results, read_warm_start


def find_device(device_id: str) -> DeviceInfo:
    """Return the description of a device, which is opened once unless it is modelled. Raises
    ``UserError`` for one that measures nothing."""
    if is_modelled(device_id):
        return modelled_device(device_id)
    require_timing(device_id)
    device = open_device(device_id)
    try:
        return device.info
    finally:
        device.close()


def load_warm_start(arguments: argparse.Namespace, device: DeviceInfo) -> WarmStart:
    """Return the warm start of ``--from``. Raises ``UserError`` if it does not apply."""
    if arguments.start is None:
        return COLD_START
    with options.flag_errors("--from"):
        if device.modelled:
            raise UserError(f"{device.id} is modelled and measures nothing: tune on a device")
        start = read_warm_start(arguments.start)
        start.check_for(find(device.target).emulates or device.target)
    return start


def search(
    arguments: argparse.Namespace,
    plan: Schedule,
    problems: Sequence[TuningProblem],
    device: DeviceInfo,
    meter: Meter,
    start: WarmStart,
    on_event: Callable[[Event], None],
) -> TuningResult:
    """Return the decisions of a run on that device."""
    settings = SearchOptions(
        strategy=arguments.strategy,
        seed=arguments.seed,
        known=[prior for path in arguments.known for prior in read_prior_results(path)],
        start=start,
    )
    tools, lock = None, None
    if device.modelled:
        tools = _model_tools(arguments, device)
    elif not device.emulated:
        lock = lock_device(device.id, Path(gettempdir()) / "kiln-locks")
    with lock or nullcontext():
        pool = _compilers(arguments, find(device.target))
        return tune(*(plan, problems, device, pool, meter, settings, on_event), model_tools=tools)


def _model_tools(arguments: argparse.Namespace, device: DeviceInfo) -> ModelTools:
    with options.flag_errors("--model-limit"):
        limit_s = parse_seconds(arguments.model_limit)
    emulations = _compilers(arguments, emulation_for(device))
    workers = min(arguments.jobs or usable_cpus(), max_model_workers())
    cache = ModelCache(options.code_cache(arguments).root)
    return ModelTools(emulations, ModelWorkers(workers, cache, limit_s))


def _compilers(arguments: argparse.Namespace, target: Target) -> LocalCompilePool:
    return LocalCompilePool(
        target,
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        arguments.jobs or usable_cpus(),
        parse_flags(arguments.flags),
    )
