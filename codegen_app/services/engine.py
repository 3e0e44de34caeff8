"""The engine as the services use it: a graph's file becomes a schedule with its backend.

Scheduling is deterministic, so a worker process keeps the last few results; the rows hold
everything that anybody else needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from codegen_app.models import Artifact, GeneratedKernel
from codegen_app.services import artifacts
from scheduler import pipeline, targets
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.scheduling import BaseScheduling, RejectedConfig, targets_sharing_source
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.tuning.problems import TuningProblem, find_problems


@dataclass(frozen=True)
class Scheduled:
    """A graph in execution order, and the backend that makes its kernels."""

    schedule: Schedule
    backend: BaseScheduling

    def with_name(self, graph_name: str) -> Schedule:
        """The schedule of the graph under a name: a file says none, and what is kept here serves
        every graph that was imported from it."""
        lowered = self.schedule.lowered
        named = replace(lowered, graph=replace(lowered.graph, name=graph_name))
        return replace(self.schedule, lowered=named)

    def wrapper(self, graph_name: str, target_names: Sequence[str]) -> str:
        """``wrapper.py`` of a bundle for these targets, every node served by its default."""
        chosen = [targets.find(name) for name in target_names]
        generated = pipeline.generate(self.with_name(graph_name), chosen or self.backend.targets)
        return wrapper_of(generated.manifest())

    def scheduling_for(self, target: str) -> BaseScheduling:
        """What makes its kernels for one target, whatever the others' limits are."""
        return pipeline.scheduling(self.schedule, (targets.find(target),))

    def node(self, name: str) -> SchedulerNode:
        """The scheduled node of that name; ``KeyError`` where there is none."""
        for node in self.schedule.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


@lru_cache(maxsize=4)
def scheduled(file_digest: str) -> Scheduled:
    """The imported file of that digest, scheduled.

    Raises ``UserError`` for what it cannot be, and ``FileNotFoundError`` where its file is gone.
    """
    file = artifacts.local_file(Artifact.objects.get(digest=file_digest), ".pt2")
    schedule = pipeline.schedule(pipeline.lower(pipeline.load(file)))
    return Scheduled(schedule, pipeline.scheduling(schedule, served_targets()))


@lru_cache(maxsize=8)
def scheduling_for(file_digest: str, target: str) -> BaseScheduling:
    """What makes the kernels of that file for one target alone, whatever the others' limits are.

    Raises ``UserError`` and ``FileNotFoundError`` as ``scheduled``.
    """
    return pipeline.scheduling(scheduled(file_digest).schedule, (targets.find(target),))


def served_targets() -> tuple[targets.Target, ...]:
    """The targets that kernels are made for here: one row's source serves all of them."""
    return targets_sharing_source(targets.find(targets.names()[0]))


def served_target_names() -> tuple[str, ...]:
    """Their names, in the order in which they are shown."""
    return tuple(target.name for target in served_targets())


class CandidateSet(NamedTuple):
    """Every candidate of a node by its kernel's name, the untuned default first, and the
    configurations that a legality rule rejected."""

    callers: dict[str, TemplateCaller]
    rejected: tuple[RejectedConfig, ...]


def candidates(file_digest: str, node_name: str, target: str = "") -> CandidateSet:
    """What the engine offers for a node of that file: what serves all targets, or all that serves
    one. Every candidate is rendered: seconds for a large node, and nothing of it is kept."""
    prepared = scheduled(file_digest)
    node = prepared.node(node_name)
    backend = scheduling_for(file_digest, target) if target else prepared.backend
    made = backend.candidates(node)
    every = (prepared.backend.default(node), *made.callers)
    return CandidateSet({caller.name: caller for caller in every}, made.rejected)


@lru_cache(maxsize=64)
def callers(file_digest: str, node_name: str, target: str = "") -> dict[str, TemplateCaller]:
    """Every candidate of a node of that file, by its kernel's name: those that serve all targets,
    or all that serve one."""
    return candidates(file_digest, node_name, target).callers


@lru_cache(maxsize=4)
def tuning_problem(
    file_digest: str, node_name: str, target: str, sizes: tuple[tuple[str, int], ...]
) -> TuningProblem:
    """What is to be decided of a node of that file at these sizes, as the worker that measures it
    finds it: with all candidates, rendered. Raises ``UserError`` for sizes that nothing holds."""
    prepared = scheduled(file_digest)
    (found,) = find_problems(
        prepared.schedule,
        scheduling_for(file_digest, target),
        targets.find(target),
        dict(sizes),
        [node_name],
        prepared.backend,
    )
    return found


class KernelRecord(NamedTuple):
    """What rows say of how a kernel is made."""

    kernel: str
    template: str
    config: tuple[tuple[str, ConfigValue], ...]


def kernel_records(kernels: Iterable[str]) -> dict[str, KernelRecord]:
    """How kernels are made, by name; without those that no row knows (one query)."""
    rows = GeneratedKernel.objects.filter(name__in=set(kernels))
    return {
        name: KernelRecord(name, template, tuple(config.items()))
        for name, template, config in rows.values_list("name", "template", "config")
    }


@lru_cache(maxsize=512)
def find_caller(
    file_digest: str, node_name: str, recorded: KernelRecord, target: str = ""
) -> TemplateCaller | None:
    """The candidate of a node of that file with that kernel, of those of ``callers``; None where
    there is none. It alone is made: all may be hundreds."""
    prepared = scheduled(file_digest)
    node = prepared.node(node_name)
    if default_kernel(file_digest, node_name) == recorded.kernel:
        return prepared.backend.default(node)
    backend = scheduling_for(file_digest, target) if target else prepared.backend
    config = dict(recorded.config)
    if not backend.is_candidate(node, recorded.template, config):
        return None
    made = backend.generate(node, recorded.template, config)
    return made if made.name == recorded.kernel else None


def can_make(file_digest: str, node_name: str, recorded: KernelRecord, target: str) -> bool:
    """Whether that kernel is a candidate of a node of that file for a target."""
    return find_caller(file_digest, node_name, recorded, target) is not None


@lru_cache(maxsize=4096)
def default_kernel(file_digest: str, node_name: str) -> str:
    """The name of the default kernel of a node of that file."""
    prepared = scheduled(file_digest)
    return prepared.backend.default(prepared.node(node_name)).name
