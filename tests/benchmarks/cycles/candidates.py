"""A node's candidates, as many as can be modelled: those that an estimate finds best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from scheduler import pipeline
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.gemm import GemmTemplate
from scheduler.codegen.rocm.gemm_config import GemmConfig
from scheduler.codegen.rocm.gemm_estimate import estimates
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import GroupKind
from scheduler.targets import Target

T = TypeVar("T")


def spread(values: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly from the first to the last."""
    if len(values) <= most:
        return list(values)
    if most == 1:
        return [values[0]]
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def choosers(plan: Schedule, target: Target, most: int) -> Iterator[tuple[str, pipeline.Chooser]]:
    """For each candidate of the plan's longest node: its configuration in words, and what chooses
    it, the other nodes' defaults. Of matrix products the ``most`` that the default's own estimate
    finds fastest, of other kernels as many evenly from all; the default itself is left out."""
    backend = pipeline.scheduling(plan, (target,))
    nodes = [node for node in plan.nodes if node.kind is not GroupKind.EXTERN]
    node = max(nodes, key=lambda one: one.kind in _MATRIX)
    default = backend.default(node)
    others = [
        caller for caller in _ordered(plan, node, target, most) if caller.name != default.name
    ]
    for caller in others:
        yield caller.description, _choosing(node.name, caller, backend)


_MATRIX = (GroupKind.GEMM, GroupKind.CONVOLUTION)


def _choosing(name: str, caller: TemplateCaller, backend: object) -> pipeline.Chooser:
    return lambda node: caller if node.name == name else None


def _ordered(
    plan: Schedule, node: SchedulerNode, target: Target, most: int
) -> list[TemplateCaller]:
    backend = pipeline.scheduling(plan, (target,))
    template = backend.template(node)
    if not isinstance(template, GemmTemplate):
        return spread(backend.candidates(node).callers, most)
    configs = [
        GemmConfig.of(config) for config in template.configs() if template.reject(config) is None
    ]
    by_time = estimates(configs, template.problem, (target,))
    best = sorted(configs, key=lambda config: by_time[config])[:most]
    return [template.generate(config.items()) for config in best]
