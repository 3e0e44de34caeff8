"""From an exported program to built kernels: by the default configurations, or tuned first."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.model import Build, Toolchain
from scheduler.build.recipe import library_of
from scheduler.build.toolchains import (
    Search,
    ToolchainResult,
    find_target_toolchains,
    pick_toolchain,
)
from scheduler.bundle.manifest import Manifest
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.bindings import Bindings, hint_bindings
from scheduler.ir.graph import InputKind
from scheduler.ir.operations import GroupKind
from scheduler.results.model import Results
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target, find
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.run import SearchOptions, tune
from scheduler.tuning.tuner import ChosenConfig
from tests.benchmarks.gpu.problem import Loaded


@dataclass(frozen=True)
class Shop:
    """What kernels are made with, and for which target."""

    target_name: str
    cache: CodeCache

    @property
    def target(self) -> Target:
        return find(self.target_name)

    @cached_property
    def _compilers(self) -> tuple[ToolchainResult, ...]:
        search = Search(path=os.environ.get("PATH", ""), cache=self.cache)
        return find_target_toolchains(self.target, search)

    def compiler(self, target: Target, source_file: str = "", /) -> Toolchain:
        """The best that is here for such sources. Raises ``UserError`` where there is none."""
        return pick_toolchain(self._compilers, target, source_file)


@dataclass(frozen=True)
class Made:
    """Kernels of one program, built for one target."""

    manifest: Manifest
    libraries: Mapping[str, Path]
    bindings: Bindings
    inputs: tuple[str, ...]
    """The buffers of the user's inputs, in order."""


def scheduled(problem: Loaded) -> Schedule:
    """What Kiln makes of the problem's file."""
    if problem.file is not None:
        return pipeline.schedule(pipeline.lower(pipeline.load(problem.file)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt2")
        torch.export.save(problem.program, path)
        return pipeline.schedule(pipeline.lower(pipeline.load(path)))


def in_language(plan: Schedule, shop: Shop, source_file: str) -> pipeline.Chooser | None:
    """The defaults of the language whose sources are called so, for the nodes that it serves; None
    where it serves none, or nothing here builds it."""
    backend = pipeline.scheduling(plan, (shop.target,))
    try:
        shop.compiler(shop.target, source_file)
        member = next(one for one in backend.members if one.source_file == source_file)
    except (UserError, StopIteration):
        return None
    callers: dict[str, TemplateCaller] = {}
    for node in plan.nodes:
        if node.kind is GroupKind.EXTERN or not member.serves(node):
            continue
        with suppress(UserError):  # no configuration of it serves: the base's does
            callers[node.name] = member.default(node)
    return (lambda node: callers.get(node.name)) if callers else None


Times = Sequence[tuple[str, float]]
"""Of each launch in turn: its kernel, and microseconds."""


def mixed(
    plan: Schedule, second: pipeline.Chooser, default: Times, other: Times
) -> pipeline.Chooser:
    """For each node its default, or what ``second`` chooses where that was faster. Nodes that share
    their kernels are decided together. Both times have a launch for each node that is no extern."""
    names = [node.name for node in plan.nodes if node.kind is not GroupKind.EXTERN]
    gains: dict[tuple[str, str], float] = defaultdict(float)
    kernels = {}
    for name, (kernel, time), (another, its_time) in zip(names, default, other, strict=True):
        kernels[name] = kernel, another
        gains[kernel, another] += time - its_time
    faster = {name for name, both in kernels.items() if gains[both] > 0}
    return lambda node: second(node) if node.name in faster else None


def tuned(plan: Schedule, shop: Shop, device: DeviceInfo, seconds: float) -> pipeline.Chooser:
    """Which candidate serves each node, by a short run of Kiln's tuner with that time a kernel."""
    problems = _problems(plan, shop)
    pool = LocalCompilePool(
        shop.target, shop.compiler, shop.cache, os.cpu_count() or 1, DEFAULT_FLAGS
    )
    meter = Meter(Budget(seconds * len(problems)))
    found = tune(plan, problems, device, pool, meter, SearchOptions())
    return _chooser(plan, shop, found.configs)


def recorded(plan: Schedule, shop: Shop, results: Sequence[Results]) -> pipeline.Chooser | None:
    """The same by what was recorded of the graph at these sizes, for this target; None where that
    is nothing."""
    graph, bindings = plan.lowered.graph, hint_bindings(plan.lowered.graph.symbols)
    configs: dict[str, ChosenConfig] = {}
    nodes = {problem.node.name: problem.nodes for problem in _problems(plan, shop)}
    for known, run in ((file, run) for file in results for run in file.runs):
        if (run.graph.digest, run.target, run.bindings) != (
            graph.digest,
            shop.target.name,
            bindings,
        ):
            continue
        for task in run.tasks:
            for chosen in (one for one in task.candidates if one.chosen):
                template = known.kernels[chosen.kernel].template
                again = ChosenConfig(template, chosen.config)
                configs |= dict.fromkeys(nodes.get(task.node, ()), again)
    return _chooser(plan, shop, configs) if configs else None


def _problems(plan: Schedule, shop: Shop) -> tuple[TuningProblem, ...]:
    backend = pipeline.scheduling(plan, (shop.target,))
    return find_problems(plan, backend, shop.target, hint_bindings(plan.lowered.graph.symbols), [])


def _chooser(plan: Schedule, shop: Shop, configs: Mapping[str, ChosenConfig]) -> pipeline.Chooser:
    backend = pipeline.scheduling(plan, (shop.target,))

    def choose(node: SchedulerNode) -> TemplateCaller | None:
        chosen = configs.get(node.name)
        if chosen is None:
            return None
        return backend.generate(node, chosen.template, chosen.config)

    return choose


def made(plan: Schedule, shop: Shop, choose: pipeline.Chooser | None = None) -> Made:
    """Every kernel, by the default configurations where nothing is chosen. Raises ``UserError``
    where one is rejected."""
    generated = pipeline.generate(plan, [shop.target], choose)
    if generated.loops:
        raise UserError(f"{generated.loops[0].node} is a loop, whose steps are not timed here")
    if generated.externs:
        raise UserError(f"no kernel: {generated.externs[0].op}: {generated.externs[0].reason}")
    built = pipeline.build_kernels(generated.kernels, [shop.target], shop.compiler, shop.cache)
    libraries = {}
    for (name, _), result in built.items():
        if not isinstance(result, Build):
            raise UserError(f"{name}: {result.reason}")
        libraries[name] = library_of(result)
    graph, manifest = plan.lowered.graph, generated.manifest()
    by_source = {buffer.source_name: name for name, buffer in manifest.buffers.items()}
    given = [value for value in graph.inputs if value.kind is InputKind.USER]
    names = tuple(by_source[value.source_name or value.name] for value in given)
    return Made(manifest, libraries, hint_bindings(graph.symbols), names)
