"""A node's candidates, as many as can be modelled or measured: those that an estimate finds best,
and an even sample of all, since the default is the best of the same estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from scheduler import pipeline
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.gemm import config as cutedsl_config
from scheduler.codegen.cutedsl.gemm import template as cutedsl
from scheduler.codegen.rocm.gemm.config import GemmConfig
from scheduler.codegen.rocm.gemm.estimate import estimate_ratios
from scheduler.codegen.rocm.gemm.template import GemmTemplate
from scheduler.codegen.template import Config, KernelTemplate
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import GroupKind
from scheduler.targets import Target

T = TypeVar("T")
_MATRIX = (GroupKind.GEMM, GroupKind.CONVOLUTION)
_EVENLY = 3  # of so many candidates one is of the even sample, where there is an estimate


def spread(values: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly from the first to the last."""
    if len(values) <= most:
        return list(values)
    if most == 1:
        return [values[0]]
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def choosers(plan: Schedule, target: Target, most: int) -> Iterator[tuple[str, pipeline.Chooser]]:
    """For each of the candidates of the plan's longest node: its configuration in words, and what
    chooses it, the other nodes' defaults. The default itself is left out."""
    node = longest(plan)
    for caller in others(pipeline.scheduling(plan, (target,)).template(node), target, most):
        yield caller.description, choosing(caller)


def longest(plan: Schedule) -> SchedulerNode:
    """A product if there is one, else the first node with a kernel."""
    nodes = [node for node in plan.nodes if node.kind is not GroupKind.EXTERN]
    return max(nodes, key=lambda one: one.kind in _MATRIX)


def choosing(caller: TemplateCaller) -> pipeline.Chooser:
    """That candidate for its node."""
    return lambda node: caller if node.name == caller.node else None


def others(template: KernelTemplate, target: Target, most: int) -> list[TemplateCaller]:
    """At most so many candidates, the default not among them: of products two thirds are those
    that the default's own estimate finds fastest; the others are an even sample of all."""
    legal = [config for config in template.configs() if template.reject(config) is None]
    estimated = _by_estimate(template, legal, target)
    evenly = most // _EVENLY if estimated else most
    default = template.generate(template.default_config()).name
    found: dict[str, TemplateCaller] = {}
    for configs, end in ((estimated, most - evenly), (spread(legal, evenly + 1), most)):
        for caller in map(template.generate, configs):
            if len(found) == end:
                break
            if caller.name != default:
                found.setdefault(caller.name, caller)
    return list(found.values())


def _by_estimate(
    template: KernelTemplate, configs: Sequence[Config], target: Target
) -> list[Config]:
    """The fastest first; none where the template has no estimate."""
    times: Mapping[GemmConfig, float]
    if isinstance(template, GemmTemplate):
        tiles = [GemmConfig.create(config) for config in configs]
        times = estimate_ratios(tiles, template.problem, (target,))
        return [one.items() for one in sorted(tiles, key=lambda one: times[one])]
    if isinstance(template, cutedsl.GemmTemplate):
        problem = template.problem
        ways = [cutedsl_config.GemmConfig.create(config) for config in configs]
        ways.sort(key=lambda one: cutedsl_config.estimate_clocks(one, problem))
        return [one.items() for one in ways]
    return []
