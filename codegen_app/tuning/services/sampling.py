"""The candidates of a run without a budget: a sample of those for the run's target.

The space is that of a search (``tuning/services/search.py``), whatever is legal on other targets:
the untuned default, others spread evenly over the rest, and earlier runs' kernels of the node that
are still candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q

from codegen_app.graphs.models import TemplateNode
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.services import builds, engine, problem_work, recording
from codegen_app.tuning.models import Candidate, Selection, TuningRun
from codegen_app.tuning.services import run_requests
from codegen_app.tuning.services.candidate_results import rejection_fields
from scheduler import targets
from scheduler.build.recipe import can_build
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.tuning.problems import ProblemCall, call_of


@dataclass(frozen=True)
class CandidateSample:
    """A node's sample: the candidates that a run tries with their positions among the ``offered``,
    the default first, and the lines of configurations that are not legal on its target. ``call`` is
    None for sizes that no memory holds; the worker finds and reports these."""

    callers: tuple[tuple[int, TemplateCaller], ...]
    offered: int
    rejected: tuple[Mapping[str, Any], ...]
    call: ProblemCall | None


def sample_candidates(run: TuningRun, nodes: Iterable[TemplateNode]) -> dict[int, CandidateSample]:
    """Return a run's candidates by node; this is the long part, and nothing is written.

    Raises ``UserError`` if kernels can no longer be generated for the graph.
    """
    nodes = list(nodes)
    # Kernels that earlier runs generated for a node, and prepared ones that they tried.
    problem = OuterRef("template_node__problem")
    tried = Candidate.objects.filter(kernel=OuterRef("kernel"), task__problem=problem)
    uses = KernelUse.objects.filter(template_node__in=nodes)
    uses = uses.filter(Q(position__gte=recording.MAX_RECORDED) | Exists(tried))
    earlier: dict[int, set[str]] = {node.pk: set() for node in nodes}
    for pk, name in uses.values_list("template_node", "kernel__name"):
        earlier[pk].add(name)
    selected: dict[int, set[str]] = {}
    rows = Selection.objects.filter(target=run.target, until=None)
    rows = rows.filter(problem__in={node.problem_id for node in nodes})
    for problem_id, name in rows.values_list("problem", "kernel__name"):
        selected.setdefault(problem_id, set()).add(name)
    return {
        node.pk: _sample_node(run, node, earlier[node.pk], selected.get(node.problem_id or 0, ()))
        for node in nodes
    }


def _sample_node(
    run: TuningRun, node: TemplateNode, earlier: Collection[str], selected: Collection[str]
) -> CandidateSample:
    """Sample the default first, then the selected kernels, which a winner must be compared with,
    others evenly over their order, and kernels of earlier runs."""
    digest = run.graph.file.digest
    offered = engine.candidates(digest, node.name, run.target)
    target = targets.find(run.target)
    # In a language that nothing builds for the target, only the untuned default is tried.
    buildable = {
        name: caller
        for name, caller in offered.callers.items()
        if can_build(target, caller.kernel.source_file)
    }
    first, others = list(buildable)[:1], dict(list(buildable.items())[1:])
    limit = run.candidate_limit
    count = recording.MAX_RECORDED if limit is None else limit
    sampled = recording.spread(others, count - 1) if count > 1 else ()
    in_use = [name for name in others if name in selected]
    known = [name for name in buildable if name in earlier]
    names = list(dict.fromkeys([*first, *in_use, *sampled, *known]))
    places = {name: place for place, name in enumerate(offered.callers)}
    # The call is recorded now: a remote worker cannot write it into rows.
    scheduled = engine.scheduled(digest)
    default = next(iter(offered.callers.values()))
    try:
        call = call_of(scheduled.node(node.name), scheduled.schedule, default, target, run.bindings)
    except UserError:
        call = None
    return CandidateSample(
        tuple((places[name], buildable[name]) for name in names[:limit]),
        len(offered.callers),
        tuple(recording.rejected_line(config) for config in offered.rejected),
        call,
    )


def record_limits(run: TuningRun, nodes: Iterable[TemplateNode]) -> None:
    """Record the work of these nodes' problems at the run's sizes, which is shown beside times."""
    scheduled = engine.scheduled(run.graph.file.digest)
    pairs = [
        (node.problem, scheduled.node(node.name)) for node in nodes if node.problem is not None
    ]
    problem_work.record_all(pairs, scheduled.schedule.lowered, run.bindings)


def record_kernels(
    run: TuningRun, nodes: Mapping[int, TemplateNode], samples: Mapping[int, CandidateSample]
) -> dict[int, list[tuple[int, GeneratedKernel]]]:
    """Return the rows of the samples' kernels with their positions, by node; new ones are written.
    Part of the transaction that plans them."""
    digest = run.graph.file.digest
    names = {caller.name for sample in samples.values() for _, caller in sample.callers}
    uses = KernelUse.objects.filter(template_node__in=list(samples), kernel__name__in=names)
    known = {
        (use.template_node_id, use.kernel.name): use.kernel
        for use in uses.select_related("kernel").defer("kernel__source")
    }
    rows: dict[int, list[tuple[int, GeneratedKernel]]] = {}
    for pk, sample in samples.items():
        rows[pk] = []
        for place, caller in sample.callers:
            kernel = known.get((pk, caller.name))
            if kernel is None:
                kernel = recording.record_candidate(
                    nodes[pk],
                    place,
                    engine.scheduled(digest),
                    caller,
                    engine.scheduling_for(digest, run.target),
                )
            rows[pk].append((place, kernel))
    return rows


class RunBuilds:
    """The builds of kernels for a run, or the reason if no compiler here builds their language.

    Raises ``UserError`` if that is the language of the ``defaults``: nothing would be compared.
    """

    def __init__(
        self,
        run: TuningRun,
        requested: Iterable[GeneratedKernel],
        defaults: Iterable[GeneratedKernel],
    ) -> None:
        self._builds: dict[int, Build] = {}
        self._obstacles: dict[str, str] = {}
        needed = {kernel.source_file for kernel in defaults}
        by_language: dict[str, list[GeneratedKernel]] = {}
        for kernel in requested:
            by_language.setdefault(kernel.source_file, []).append(kernel)
        for language, group in by_language.items():
            try:
                priority = run_requests.build_priority(run)
                self._builds |= builds.request_builds(group, run.target, priority=priority)
            except MachineError:
                raise
            except UserError as error:
                if language in needed:
                    raise
                self._obstacles[language] = str(error)

    @property
    def builds(self) -> Collection[Build]:
        """Return all requested builds."""
        return self._builds.values()

    def fields(self, kernel: GeneratedKernel) -> dict[str, Any]:
        """Return a candidate's fields for its build, or for why it has none."""
        build = self._builds.get(kernel.pk)
        if build is not None:
            return {"build": build}
        return rejection_fields(Rejected(Stage.COMPILE, self._obstacles[kernel.source_file]))
