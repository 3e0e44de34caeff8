"""The page of a scheduled node: the problem, its origins, and its candidates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from django.db.models import Count, Q
from django.urls import reverse

from codegen_app.graphs.models import GraphNode, TemplateNode
from codegen_app.graphs.origins import Lines, common_module, lines_by_node, own_frame
from codegen_app.graphs.pages.graph.loops import LoopRow, find_loops, innermost_loop
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.queries.resource_use import ResourceUse, resource_use
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.pages.explorer.model import Explorer
from codegen_app.tuning.pages.runs.query import RunRow, run_rows
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.coverage import Coverage
from codegen_app.tuning.queries.languages import LanguageRow, TriedCandidate, language_rows
from codegen_app.tuning.queries.ledger import candidate_outcome
from codegen_app.tuning.queries.limits import Limits, limits
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.tuning.queries.measurements import CurrentMeasurement, measurement_fields
from codegen_app.tuning.queries.modelled_candidates import BoardSizes, ModelledTime, modelled_times
from codegen_app.tuning.queries.ranking import Call, RankedKernel, kernel_ranking
from codegen_app.web.row import build_row
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.codegen.languages import language_of
from scheduler.errors import Stage
from scheduler.isa.occupancy import rules_of
from scheduler.track.ratios import MedianRatio, ratio_of_sums
from scheduler.tuning.ledger import CandidateState


@dataclass(frozen=True)
class OriginRow:
    """One node of the model's graph that is computed here; ``frame`` is the model's own line,
    ``lines`` those of the default kernel's source that compute it, (first, last) each;
    ``is_shared``: other kernels compute it, too."""

    name: str
    target: str
    arguments: Mapping[str, Any]
    module_path: str
    module_type: str
    frames: tuple[Mapping[str, Any], ...]
    frame: Mapping[str, Any] | None
    lines: Lines
    is_shared: bool


@dataclass(frozen=True)
class Timing(MeasuredRow):
    """A measurement, where it was made, and in which run."""

    device: str
    target: str
    bindings: Mapping[str, int]
    run: int | None
    at: datetime


@dataclass(frozen=True)
class Failure:
    """The stage and reason for which a run dropped a candidate, when, and the ledger's term for
    it."""

    outcome: str
    stage: str
    reason: str
    at: datetime | None

    def __str__(self) -> str:
        return f"{self.stage}: {self.reason}"


@dataclass(frozen=True)
class BuildState:
    """The state of a build for one target, and whether it has figures: it is finished, or imported
    with its times. ``compare`` links to its comparison with the default's."""

    id: int
    target: str
    state: str
    has_figures: bool
    reason: str
    compare: str


@dataclass(frozen=True)
class CandidateRow:
    """A kernel that can serve the node. ``serves`` lists the targets and device models it was
    selected on, ``selected`` whether it is selected in the page's bucket; ``rejections`` why runs
    dropped it; ``modelled`` is its time on the page's modelled board, ``resource_use`` that of its
    build for the bucket's target, or of the first that has registers; ``outcome`` is its outcome in
    the ledger's terms, ``order`` its position among the measured or rejected candidates, by when
    each was last measured or rejected; ``ratio`` is its median over that of the page's headline,
    None if it was not measured or is the headline's own."""

    position: int
    language: str
    kernel: str
    url: str
    config: Mapping[str, Any]
    description: str
    is_default: bool
    selected: bool
    serves: tuple[str, ...]
    builds: tuple[BuildState, ...]
    timing: Timing | None
    rejections: tuple[str, ...]
    modelled: ModelledTime | None = None
    resource_use: ResourceUse | None = None
    failure: Failure | None = None
    outcome: str = ""
    order: int | None = None
    ratio: MedianRatio | None = None


@dataclass(frozen=True)
class RejectedConfigs:
    """A reason for which legality rules rejected configurations, and these configurations."""

    stage: str
    reason: str
    configs: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Neighbour:
    """The scheduled node before or after this one."""

    text: str
    url: str


@dataclass(frozen=True)
class NodeCost:
    """The node's part of the measured time of its graph: ``call`` is the node in the ranking of the
    graph's kernels on a ``device``, ``kernel`` the row of its kernel there."""

    device: str
    call: Call
    kernel: RankedKernel
    graph_ns: float | None
    measured: Coverage


@dataclass(frozen=True)
class NodePage:
    """One scheduled node. Its candidates' times are those of one ``bucket``, modelled ones those of
    one board and binding, ``modelled_at``. Legality is that of one ``target`` out of ``targets``;
    ``legal`` counts the configurations that can serve the node; ``cost`` is None if its graph has
    no times of the bucket's device, compiler and sizes. ``module`` is the model's module that it
    belongs to; ``loop`` is the innermost loop that
    runs it at each step; ``body`` are the nodes of a loop that begins here."""

    id: int
    url: str
    name: str
    kind: str
    op: str
    graph: str
    graph_url: str
    problem: str
    problem_id: int | None
    problem_digest: str
    problem_text: str
    symbols: Mapping[str, Any]
    group: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    frees: tuple[str, ...]
    extern_reason: str
    module: str
    origins: tuple[OriginRow, ...]
    decisions: tuple[Mapping[str, Any], ...]
    bucket: serving.Bucket | None
    buckets: tuple[serving.Bucket, ...]
    modelled_at: BoardSizes | None
    candidates: tuple[CandidateRow, ...]
    languages: tuple[LanguageRow, ...]
    offered: int
    target: str
    targets: tuple[str, ...]
    legal: int | None
    rejected: tuple[RejectedConfigs, ...]
    runs: tuple[RunRow, ...]
    limits: Limits | None
    previous: Neighbour | None
    next: Neighbour | None
    cost: NodeCost | None = None
    loop: LoopRow | None = None
    body: tuple[Neighbour, ...] = ()
    explorer: Explorer | None = None  # its plots' data, as the address asks

    @property
    def default(self) -> CandidateRow | None:
        """The engine's selection before any measurement."""
        return next((row for row in self.candidates if row.is_default), None)

    @property
    def fastest(self) -> CandidateRow | None:
        """The candidate with the lowest median in the page's bucket."""
        return _fastest(self.candidates)

    @property
    def shown(self) -> CandidateRow | None:
        """The candidate of the page's headline time: the selected one in its bucket, or the fastest
        if that has no time there."""
        timed = (row for row in self.candidates if row.selected and row.timing)
        return next(timed, self.fastest)

    @property
    def second(self) -> CandidateRow | None:
        """The fastest measured candidate after the one of the headline."""
        shown = self.shown
        return _fastest(row for row in self.candidates if row is not shown)

    @property
    def model_lines(self) -> tuple[Mapping[str, Any], ...]:
        """The lines of the model that are computed here, each once, in the order of origins."""
        frames = [origin.frame for origin in self.origins if origin.frame]
        return tuple({(frame["file"], frame["line"]): frame for frame in frames}.values())

    @property
    def timed(self) -> int:
        """The number of candidates with a time in the page's bucket."""
        return sum(row.timing is not None for row in self.candidates)

    @property
    def rejected_count(self) -> int:
        """The number of illegal configurations."""
        return sum(len(row.configs) for row in self.rejected)


def node_page(pk: int, sizes: int = 0, bucket_name: str = "", target: str = "") -> NodePage:
    """Return a scheduled node (24 queries). Raises ``TemplateNode.DoesNotExist``.

    ``sizes`` is the index of the known sizes for its limits; ``bucket_name`` selects whose times
    are shown, by default or if unknown the first bucket; ``target`` selects the legality rules, by
    default the bucket's.
    """
    node = (
        TemplateNode.objects.select_related("graph", "problem")
        .defer("graph__tensors", "graph__wrapper")
        .get(pk=pk)
    )
    problem = node.problem
    previous, following, loop, body = _surroundings(node)
    known = serving.node_buckets([node])
    bucket = known.find(bucket_name)
    modelled_at, candidates = _candidates(node, known, bucket)
    tried = []
    for row in candidates:
        metrics = row.timing.metrics if row.timing else {}
        reason = "" if row.timing else next(iter(row.rejections), "")
        candidate = TriedCandidate(
            language=row.language, kernel=row.kernel, url=row.url, metrics=metrics
        )
        tried.append((candidate, reason))
    origins = _origins(node)
    recorded = serving.recorded_targets([node])
    target = serving.shown_target(recorded, bucket, target)
    return build_row(
        NodePage,
        node,
        url=node.get_absolute_url(),
        graph=node.graph.name,
        graph_url=node.graph.get_absolute_url(),
        problem=problem.summary if problem else "",
        problem_digest=problem.digest if problem else "",
        problem_text=problem.text if problem else "",
        symbols=problem.symbols if problem else {},
        group=tuple(node.group),
        reads=tuple(node.reads),
        writes=tuple(node.writes),
        frees=tuple(node.frees),
        module=common_module((row.module_path, row.is_shared) for row in origins),
        origins=origins,
        decisions=tuple(
            decision
            for decision in node.graph.decisions
            if node.name in (decision["producer"], decision["consumer"])
        ),
        bucket=bucket,
        buckets=known.buckets,
        modelled_at=modelled_at,
        candidates=candidates,
        languages=language_rows(tried),
        target=target,
        targets=recorded,
        legal=node.legal.get(target),
        rejected=_rejected(node.rejected_for(target)),
        runs=run_rows(
            node.graph.tuning_runs.filter(Q(template_node=node) | Q(template_node=None))[:20]
        ),
        limits=limits(node.problem_id, sizes),
        previous=previous,
        next=following,
        cost=_cost(node, bucket) if problem else None,
        loop=loop,
        body=body,
        explorer=None,
    )


def _cost(node: TemplateNode, bucket: serving.Bucket | None) -> NodeCost | None:
    """Return the node's part of its graph's time in the bucket (8 queries). The graph's bucket can
    have more sizes: those that other nodes use."""
    ranking = kernel_ranking(node.graph, bucket.name if bucket else "")
    shown = ranking.bucket
    if bucket and shown:
        places = [(each.device_name, each.target, each.toolchain) for each in (bucket, shown)]
        if places[0] != places[1]:
            return None
        if not serving.same_sizes(shown.bindings, bucket.bindings, bucket.bindings):
            return None
    device = shown.device_name if shown else ""
    costs = (
        NodeCost(device, call, row, ranking.total_ns, ranking.measured)
        for row in ranking.kernels
        for call in row.calls
        if call.id == node.pk
    )
    return next(costs, None)


def _origins(node: TemplateNode) -> tuple[OriginRow, ...]:
    """Return the model's nodes that are computed here (2 queries)."""
    use = KernelUse.objects.filter(template_node=node, is_default=True).only("line_origins").first()
    lines = lines_by_node(use.line_origins) if use else {}
    return tuple(
        build_row(
            OriginRow,
            row,
            frames=tuple(row.frames),
            frame=own_frame(row.frames),
            lines=lines.get(row.name, ()),
            is_shared=row.kernels > 1,
        )
        for row in GraphNode.objects.annotate(kernels=Count("template_nodes"))
        .filter(template_nodes=node)
        .order_by("position")
    )


def _rejected(lines: Iterable[Mapping[str, Any]]) -> tuple[RejectedConfigs, ...]:
    """Return rejected configurations by reason, the most frequent first."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in lines:
        groups[row["stage"], row["reason"]].append(row.get("config", {}))
    rows = [
        RejectedConfigs(stage, reason, tuple(configs))
        for (stage, reason), configs in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-len(row.configs), row.reason)))


def _candidates(
    node: TemplateNode, known: serving.NodeBuckets, bucket: serving.Bucket | None
) -> tuple[BoardSizes | None, tuple[CandidateRow, ...]]:
    """Return the kernels for this node, with builds, times in a bucket, modelled times (with their
    board and sizes) and rejections (6 queries). A kernel that was tried for another node of the
    graph with the same problem is a candidate here, too: its time is this node's."""
    same_problem = Q(template_node__graph=node.graph_id, template_node__problem=node.problem_id)
    of_kernels = (
        KernelUse.objects.filter(
            same_problem if node.problem_id is not None else Q(template_node=node)
        )
        .annotate(of_other=~Q(template_node=node))
        .select_related("kernel")
        .defer("kernel__source", "metadata_comment", "line_origins")
        .order_by("kernel_id", "of_other", "pk")
        .distinct("kernel_id")
    )
    uses = sorted(of_kernels, key=lambda use: (use.position, use.pk))
    kernels = [use.kernel_id for use in uses]
    builds: dict[int, list[Build]] = defaultdict(list)
    for build in Build.objects.filter(kernel__in=kernels).only(
        *("kernel_id", "target", "state", "stage", "reason", "finished_at", "resources")
    ):
        builds[build.kernel_id].append(build)
    default = {
        build.target: build.pk
        for use in uses
        if use.is_default
        for build in builds[use.kernel_id]
        if build.has_figures
    }
    measured = {
        kernel: row for (_, kernel), row in serving.measurements([node], bucket, kernels).items()
    }
    selection = known.selections(bucket).get(node.problem_id or 0)
    selected_on: dict[int, dict[str, None]] = defaultdict(dict)  # keeps order, drops repeats
    for choice in known.selected:
        selected_on[choice.kernel_id][f"{choice.target} ({choice.device_name})"] = None
    rejections = _rejections(node, kernels)
    target = bucket.target if bucket else ""
    modelled_at, modelled = modelled_times(
        {kernel: [build.pk for build in built] for kernel, built in builds.items()},
        target,
        bucket.device_name if bucket else "",
        bucket.bindings if bucket else None,
        node.problem_id,
    )
    timed = [measured[pk] for pk in kernels if pk in measured]
    fastest = min(timed, key=lambda row: row.result.median_ns, default=None)
    headline = measured.get(selection.kernel_id, fastest) if selection else fastest
    rows: list[CandidateRow] = []
    ended: dict[int, datetime] = {}
    for use in uses:
        pk, built = use.kernel_id, builds[use.kernel_id]
        build_states: list[BuildState] = []
        for build in built:
            compare, reference = "", default.get(build.target)
            if build.has_figures and reference not in (None, build.pk):
                compare = f"{reverse('compare')}?build={reference}&build={build.pk}"
            build_states.append(build_row(BuildState, build, compare=compare))
        timing = _timing(measured[pk]) if pk in measured else None
        failure = _failure(rejections.get(pk, ()), built)
        outcome = str(CandidateState.MODELLED if pk in modelled else CandidateState.UNTRIED)
        ended_at = None
        if timing is not None:
            outcome, ended_at = str(CandidateState.MEASURED), timing.at
        elif failure is not None:
            outcome, ended_at = failure.outcome, failure.at
        if ended_at is not None:
            ended[pk] = ended_at
        row = CandidateRow(
            position=use.position,
            language=language_of(use.kernel.source_file),
            kernel=use.kernel.name,
            url=use.kernel.page_url(node=node.pk, target=bucket.listing_target if bucket else ""),
            config=use.kernel.config,
            description=use.description,
            is_default=use.is_default,
            selected=selection is not None and pk == selection.kernel_id,
            serves=tuple(selected_on[pk]),
            builds=tuple(build_states),
            timing=timing,
            modelled=modelled.get(pk),
            rejections=tuple(map(str, rejections.get(pk, ()))),
            failure=failure,
            resource_use=_resource_use(built, target),
            outcome=outcome,
            ratio=_ratio(headline, measured.get(pk)),
        )
        rows.append(row)
    by_time = sorted((pk for pk in kernels if pk in ended), key=ended.__getitem__)
    order = {pk: number for number, pk in enumerate(by_time, start=1)}
    return modelled_at, tuple(
        replace(row, order=order.get(pk)) for pk, row in zip(kernels, rows, strict=True)
    )


def _fastest(rows: Iterable[CandidateRow]) -> CandidateRow | None:
    timed = [(row.timing.time.value, row.position, row) for row in rows if row.timing]
    return min(timed, key=itemgetter(0, 1))[2] if timed else None


def _rejections(node: TemplateNode, kernels: Sequence[int]) -> Mapping[int, Iterable[Failure]]:
    """Return why runs rejected each kernel, each reason once (1 query)."""
    by_kernel: dict[int, dict[str, Failure]] = defaultdict(dict)
    rows = Candidate.objects.filter(
        task__problem=node.problem_id,
        kernel__in=kernels,
        state__in=(State.REJECTED, State.QUARANTINED),
    )
    for row in rows:
        outcome = candidate_outcome(row.state, row.stage)
        failure = Failure(outcome, row.stage, row.reason, row.finished_at)
        by_kernel[row.kernel_id or 0][str(failure)] = failure
    return {kernel: tuple(failures.values()) for kernel, failures in by_kernel.items()}


def _failure(rejections: Iterable[Failure], builds: Iterable[Build]) -> Failure | None:
    """Return the latest rejection, else a failure of a build."""
    rejections = tuple(rejections)
    if rejections:
        return max(rejections, key=lambda failure: failure.at.timestamp() if failure.at else 0.0)
    failed = next(
        (build for build in builds if build.state in (State.REJECTED, State.QUARANTINED)), None
    )
    if failed is None:
        return None
    stage = failed.stage or Stage.COMPILE
    return Failure(candidate_outcome(failed.state, stage), stage, failed.reason, failed.finished_at)


def _resource_use(builds: Iterable[Build], target: str) -> ResourceUse | None:
    """Return the use on the target of the times if it is a GPU (figures of another one beside them
    mislead), else on the last target by name."""
    usable = [build for build in builds if build.has_figures]
    if target and rules_of(targets.find(target)) is not None:
        usable = [build for build in usable if build.target == target]
    usable.sort(key=lambda build: build.target, reverse=True)
    uses = (resource_use(build.resources, build.target) for build in usable)
    return next((use for use in uses if use is not None), None)


def _timing(measured: CurrentMeasurement) -> Timing:
    result = measured.result
    return Timing(
        device=result.environment.device_name,
        target=result.environment.target,
        bindings=result.bindings,
        run=result.task.run_id if result.task else None,
        at=result.created_at,
        **measurement_fields(measured),
    )


def _ratio(
    headline: CurrentMeasurement | None, measured: CurrentMeasurement | None
) -> MedianRatio | None:
    if headline is None or measured is None or headline is measured:
        return None
    return ratio_of_sums([headline.result.samples_ns], [measured.result.samples_ns])


def _surroundings(
    node: TemplateNode,
) -> tuple[Neighbour | None, Neighbour | None, LoopRow | None, tuple[Neighbour, ...]]:
    """Return the nodes before and after this one by position, the innermost loop that runs it, and
    the nodes of a loop that begins here (2 queries, 1 for other nodes)."""
    beside = (node.position - 1, node.position + 1)
    rows = TemplateNode.objects.filter(graph=node.graph_id)
    shown = rows.filter(Q(position__in=beside) | Q(kind=TemplateNode.LOOP))
    others = list(shown.only("name", "position", "kind", "op"))
    near = {
        other.position: Neighbour(other.name, other.get_absolute_url())
        for other in others
        if other.position in beside
    }
    loops = find_loops(others)
    body: tuple[Neighbour, ...] = ()
    own_loop = next((loop for loop in loops if loop.name == node.name), None)
    if own_loop is not None:
        inside = rows.filter(position__gt=own_loop.first, position__lt=own_loop.last)
        body = tuple(
            Neighbour(f"{other.name} {other.op}", other.get_absolute_url())
            for other in inside.order_by("position").only("name", "op")
        )
    before, after = map(near.get, beside)
    return before, after, innermost_loop(loops, node.position), body
