"""The engine's interface for the services: a graph's file becomes a schedule with its backend.

Scheduling is deterministic, so a worker process caches the last few results; the rows hold
everything that other processes need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from codegen_app.kernels.models import GeneratedKernel
from codegen_app.platform import artifacts
from codegen_app.platform.models import Artifact
from codegen_app.platform.served_targets import served_targets
from scheduler import pipeline, targets
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.scheduling import BaseScheduling, RejectedConfig
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.tuning.problems import TuningProblem, find_problems


@dataclass(frozen=True)
class Scheduled:
    """A graph in execution order, and the backend that generates its kernels."""

    schedule: Schedule
    backend: BaseScheduling

    def with_name(self, graph_name: str) -> Schedule:
        """Return the schedule under a graph's name. A file holds no name, and the cached schedule
        serves every graph that was imported from it."""
        lowered = self.schedule.lowered
        renamed = replace(lowered, graph=replace(lowered.graph, name=graph_name))
        return replace(self.schedule, lowered=renamed)

    def wrapper(self, graph_name: str, target_names: Sequence[str]) -> str:
        """Return ``wrapper.py`` of a bundle for these targets, with every default kernel."""
        chosen = [targets.find(name) for name in target_names]
        generated = pipeline.generate(self.with_name(graph_name), chosen or self.backend.targets)
        return wrapper_of(generated.manifest())

    def scheduling_for(self, target: str) -> BaseScheduling:
        """Return the backend that generates kernels for one target, whatever the others' limits
        are."""
        return pipeline.scheduling(self.schedule, (targets.find(target),))

    def node(self, name: str) -> SchedulerNode:
        """Return the scheduled node of that name; raises ``KeyError`` if there is none."""
        for node in self.schedule.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


@lru_cache(maxsize=4)
def scheduled(file_digest: str) -> Scheduled:
    """Return the imported file of that digest, scheduled.

    Raises ``UserError`` if it cannot be scheduled, and ``FileNotFoundError`` if the file is gone.
    """
    file = artifacts.local_file(Artifact.objects.get(digest=file_digest), ".pt2")
    schedule = pipeline.schedule(pipeline.lower(pipeline.load(file)))
    return Scheduled(schedule, pipeline.scheduling(schedule, served_targets()))


@lru_cache(maxsize=8)
def scheduling_for(file_digest: str, target: str) -> BaseScheduling:
    """Return the backend for that file's kernels on one target, whatever the others' limits.

    Raises ``UserError`` and ``FileNotFoundError`` as ``scheduled`` does.
    """
    return pipeline.scheduling(scheduled(file_digest).schedule, (targets.find(target),))


class CandidateSet(NamedTuple):
    """Every candidate of a node by its kernel's name, the untuned default first, and the
    configurations that a legality rule rejected."""

    callers: dict[str, TemplateCaller]
    rejected: tuple[RejectedConfig, ...]


def candidates(file_digest: str, node_name: str, target: str = "") -> CandidateSet:
    """Return the engine's candidates for a node of that file: those legal on all targets, or all
    that are legal on one. Every candidate is rendered, which takes seconds for a large node;
    nothing is cached."""
    prepared = scheduled(file_digest)
    node = prepared.node(node_name)
    backend = scheduling_for(file_digest, target) if target else prepared.backend
    offered = backend.candidates(node)
    callers = (prepared.backend.default(node), *offered.callers)
    return CandidateSet({caller.name: caller for caller in callers}, offered.rejected)


@lru_cache(maxsize=64)
def callers(file_digest: str, node_name: str, target: str = "") -> dict[str, TemplateCaller]:
    """Return every candidate of a node of that file by its kernel's name: those legal on all
    targets, or all that are legal on one."""
    return candidates(file_digest, node_name, target).callers


@lru_cache(maxsize=4)
def tuning_problem(
    file_digest: str, node_name: str, target: str, sizes: tuple[tuple[str, int], ...]
) -> TuningProblem:
    """Return the tuning problem of a node of that file at these sizes, as the measuring worker
    builds it: with all candidates, rendered. Raises ``UserError`` for sizes that no memory holds.
    """
    prepared = scheduled(file_digest)
    (problem,) = find_problems(
        prepared.schedule,
        scheduling_for(file_digest, target),
        targets.find(target),
        dict(sizes),
        [node_name],
        prepared.backend,
    )
    return problem


class KernelRecord(NamedTuple):
    """How a kernel is generated, according to the rows."""

    kernel: str
    template: str
    config: tuple[tuple[str, ConfigValue], ...]


def kernel_records(kernels: Iterable[str]) -> dict[str, KernelRecord]:
    """Return how kernels are generated, by name, without kernels that no row has (one query)."""
    rows = GeneratedKernel.objects.filter(name__in=set(kernels))
    return {
        name: KernelRecord(name, template, tuple(config.items()))
        for name, template, config in rows.values_list("name", "template", "config")
    }


@lru_cache(maxsize=512)
def find_caller(
    file_digest: str, node_name: str, recorded: KernelRecord, target: str = ""
) -> TemplateCaller | None:
    """Return the candidate of a node of that file with that kernel, as in ``callers``, or None.
    Only this candidate is rendered: all may be hundreds."""
    if default_kernel(file_digest, node_name) == recorded.kernel:
        prepared = scheduled(file_digest)
        return prepared.backend.default(prepared.node(node_name))
    return find_candidate(file_digest, node_name, recorded, target)


@lru_cache(maxsize=512)
def find_candidate(
    file_digest: str, node_name: str, recorded: KernelRecord, target: str = ""
) -> TemplateCaller | None:
    """Return what ``find_caller`` does for a kernel that is not the node's default, without
    computing the default, which takes most of the time."""
    prepared = scheduled(file_digest)
    node = prepared.node(node_name)
    backend = scheduling_for(file_digest, target) if target else prepared.backend
    config = dict(recorded.config)
    if not backend.is_candidate(node, recorded.template, config):
        return None
    caller = backend.generate(node, recorded.template, config)
    return caller if caller.name == recorded.kernel else None


@lru_cache(maxsize=4096)
def default_kernel(file_digest: str, node_name: str) -> str:
    prepared = scheduled(file_digest)
    return prepared.backend.default(prepared.node(node_name)).name
