"""The page of a kernel: its source, the nodes that use it, its builds, and its measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.urls import reverse

from codegen_app.graphs.models import GraphNode
from codegen_app.graphs.origins import lines_by_node, own_frame
from codegen_app.kernels.modelled.rows import ModelledRow, load_report, modelled_rows
from codegen_app.kernels.modelled.view import ModelledView, modelled_view
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.models.build import ELSEWHERE, WITH_FIGURES
from codegen_app.kernels.queries.listing import ListingView, next_steps, read_listing
from codegen_app.platform import files
from codegen_app.platform.models import Artifact
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.models.benchmark_result import WITH_ORIGIN
from codegen_app.tuning.queries.kernel_choice import KernelChoice, kernel_choice
from codegen_app.tuning.queries.limits import Limits, MeasuredPoint, limits
from codegen_app.tuning.queries.measured_row import MeasuredRow, metrics_of
from codegen_app.tuning.queries.measurements import MIN_SAMPLES
from codegen_app.web.row import build_row
from codegen_app.workers.models import OPEN_STATES, State
from scheduler import targets
from scheduler.build.recipe import recipe_of
from scheduler.codegen.languages import language_of
from scheduler.isa.hazards import Hazard
from scheduler.isa.occupancy import Column, OccupancyRules, rules_of
from scheduler.targets.terms import GENERAL, Terms


@dataclass(frozen=True)
class ModelLine:
    """A line of the model's Python source that a kernel computes."""

    file: str
    line: int
    function: str
    code: str
    module_path: str


@dataclass(frozen=True)
class UseRow:
    """A scheduled node that the kernel can serve. ``links`` are the addresses of its nodes,
    ``model_lines`` the lines of the model that it computes."""

    node_id: int
    problem_id: int | None
    node: str
    op: str
    url: str
    graph: str
    graph_url: str
    problem: str
    symbols: Mapping[str, Any]
    is_default: bool
    description: str
    metadata_comment: str
    line_origins: tuple[Mapping[str, Any], ...]
    links: Mapping[str, str]
    model_lines: tuple[ModelLine, ...]


@dataclass(frozen=True)
class BuildRow:
    """One build of the kernel. Sizes in bytes, time in seconds. ``views`` are the texts that can be
    shown as its listing if there are several, the default one first; ``remark`` says why parts of
    it are missing."""

    id: int
    target: str
    state: str
    stage: str
    reason: str
    toolchain: str
    version: str
    flags: tuple[str, ...]
    duration_s: float | None
    cached: bool
    code_digest: str
    resources: Mapping[str, Mapping[str, Any]]
    diagnostics: tuple[Mapping[str, Any], ...]
    log: str
    listing_digest: str
    intermediate_digest: str
    views: tuple[str, ...]
    remark: str
    listing_title: str
    intermediate_title: str
    listing_url: str
    intermediate_url: str
    code_object_url: str
    library_url: str
    code_object_title: str
    offline_url: str
    created_at: datetime

    @property
    def errors(self) -> int:
        """The number of errors that the compiler found in the kernel's source."""
        return sum(1 for diagnostic in self.diagnostics if diagnostic["severity"] == "error")

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return sum(1 for diagnostic in self.diagnostics if diagnostic["severity"] == "warning")

    @property
    def is_open(self) -> bool:
        """Whether it is still to be compiled."""
        return self.state in OPEN_STATES

    @property
    def elsewhere(self) -> bool:
        """Whether another installation compiled it: its figures are here, its files are not."""
        return self.state == State.CANCELLED and self.reason == ELSEWHERE

    @property
    def is_comparable(self) -> bool:
        """Whether it has figures to compare: compiled here, or imported with its times."""
        return self.state == State.DONE or self.elsewhere

    @property
    def state_glyph(self) -> str:
        """The state whose glyph it has: an imported listing is as good as a finished build."""
        return State.DONE if self.elsewhere and self.listing_digest else self.state

    @property
    def state_title(self) -> str:
        """Its state, or the stage that rejected it."""
        return "built on another machine" if self.elsewhere else self.stage or self.state


@dataclass(frozen=True)
class ResultRow(MeasuredRow):
    """One measurement."""

    id: int
    problem: str
    device: str
    target: str
    bindings: Mapping[str, int]
    batch: int
    rejected: int
    check_max_error: float
    check_bound: float
    check_ratio: float
    created_at: datetime


@dataclass(frozen=True)
class ResourceRow:
    """One device function of a build as reported by the compiler, and what would allow one more
    wave. ``note`` distinguishes the build from others for its target."""

    build: int
    target: str
    note: str
    function: str
    waves: int
    max_waves: int
    resources: Mapping[str, Any]
    next_step: str
    hazards: tuple[Hazard, ...]

    def cells(self, columns: tuple[Column, ...]) -> list[list[int | None]]:
        """Return its figures in these columns; None for one that was not recorded."""
        return [[self.resources.get(name) for name in column.figures] for column in columns]


@dataclass(frozen=True)
class ResourceTable:
    """The functions of one vendor's builds, which share their figures; rows with their cells."""

    waves: tuple[str, str]
    columns: tuple[Column, ...]
    rows: tuple[tuple[ResourceRow, list[list[int | None]]], ...]


@dataclass(frozen=True)
class ProvenanceRow:
    """A graph node and the lines of the source that compute it; ``waits`` is the modelled share of
    all stalls at these lines, if modelled."""

    node: str
    url: str
    lines: tuple[tuple[int, int], ...]
    waits: float | None


@dataclass(frozen=True)
class KernelModelling:
    """The modelled results of the kernel: all rows, and the row whose report is shown beside the
    build (None if there is none; ``shown`` is also None if its file is missing)."""

    rows: tuple[ModelledRow, ...]
    row: ModelledRow | None
    shown: ModelledView | None

    @property
    def is_open(self) -> bool:
        """Whether some are still pending."""
        return any(row.is_open for row in self.rows)


@dataclass(frozen=True)
class KernelPage:
    """One kernel; ``build`` is shown beside the source, ``view`` is the text shown as its listing
    ("" if there is only one). ``counting`` is the measurement of the headline, ``choice`` says
    which kernel is selected there; ``compare_url`` compares the build with the default kernel's.
    ``missing_target`` is a requested target that it has no build for."""

    name: str
    url: str
    template: str
    config: Mapping[str, Any]
    language: str
    source: str
    source_file: str
    source_digest: str
    args: tuple[Mapping[str, Any], ...]
    launches: tuple[Mapping[str, Any], ...]
    workspace_bytes: str
    uses: tuple[UseRow, ...]
    use: UseRow | None
    builds: tuple[BuildRow, ...]
    build: BuildRow | None
    missing_target: str
    view: str
    resources: tuple[ResourceRow, ...]
    listing: ListingView | None
    modelled: KernelModelling
    provenance: tuple[ProvenanceRow, ...]
    results: tuple[ResultRow, ...]
    counting: ResultRow | None
    choice: KernelChoice | None
    compare_url: str
    limits: Limits | None

    @property
    def default_tab(self) -> str:
        """The section that the page opens: the builds if the displayed one needs attention."""
        return "resources" if self.build and self.build.is_comparable else "builds"

    @property
    def main_resources(self) -> ResourceRow | None:
        """The device function of the displayed build with the most registers."""
        rows = [row for row in self.resources if self.build and row.build == self.build.id]
        rules = rules_of(targets.find(self.build.target)) if self.build else None
        if rules is None:
            return None
        return max(rows, key=lambda row: rules.registers(row.resources), default=None)

    @property
    def main_figures(self) -> tuple[tuple[Column, list[int | None]], ...]:
        """The figures of ``main_resources`` that are not 0, with their columns."""
        row, tables = self.main_resources, self.shown_resources
        if row is None or not tables:
            return ()
        figures = zip(tables[0].columns, row.cells(tables[0].columns), strict=True)
        return tuple((column, cells) for column, cells in figures if any(cells))

    @property
    def point(self) -> MeasuredPoint | None:
        """The headline measurement among the points of the roofline; None if its device is not in
        the table of boards, or the work at its sizes is unknown."""
        row = self.counting
        points = self.limits.points if self.limits and row else ()
        return next((point for point in points if row and point.result == row.id), None)

    @property
    def modelled_share(self) -> float | None:
        """The displayed modelled time's part of the roofline on its board; None if unknown."""
        row = self.modelled.row
        boards = self.limits.boards if self.limits and row else ()
        of_board = (
            board.modelled.roofline
            for board in boards
            if row and board.modelled and board.modelled.url == row.url
        )
        return next(of_board, None)

    @property
    def is_headline_modelled(self) -> bool:
        """Whether the modelled time leads: the kernel has no time for the displayed target."""
        is_measured = self.counting and self.build and self.counting.target == self.build.target
        return self.modelled.shown is not None and not is_measured

    @property
    def beside(self) -> tuple[int, ...]:
        """The builds offered for a comparison: the displayed one and the next."""
        complete = [build.id for build in self.builds if build.is_comparable]
        selected = [self.build.id] if self.build and self.build.id in complete else []
        return tuple([*selected, *(build for build in complete if build not in selected)][:2])

    @property
    def built_for(self) -> tuple[str, ...]:
        """The targets that it has builds for, each once."""
        return tuple(dict.fromkeys(build.target for build in self.builds))

    @property
    def words(self) -> Terms:
        """The vendor's terms for the displayed build's target."""
        return targets.find(self.build.target).words if self.build else GENERAL

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of its times measured on other installations, each once."""
        return tuple(dict.fromkeys(row.origin for row in self.results if row.origin))

    @property
    def resource_tables(self) -> tuple[ResourceTable, ...]:
        """The resources, one table per vendor."""
        return _resource_tables(self.resources)

    @property
    def shown_resources(self) -> tuple[ResourceTable, ...]:
        """The resources of the displayed build alone."""
        build = self.build.id if self.build else None
        return _resource_tables(row for row in self.resources if row.build == build)


def _resource_tables(resources: Iterable[ResourceRow]) -> tuple[ResourceTable, ...]:
    by_maker: dict[OccupancyRules, list[ResourceRow]] = {}
    for row in resources:
        if (rules := rules_of(targets.find(row.target))) is not None:
            by_maker.setdefault(rules, []).append(row)
    return tuple(
        ResourceTable(
            rules.waves_heading,
            rules.columns,
            tuple((row, row.cells(rules.columns)) for row in rows),
        )
        for rules, rows in by_maker.items()
    )


def kernel_page(
    name: str,
    build_id: int | None,
    node_id: int | None,
    sizes: int = 0,
    view: str = "",
    model: tuple[int | None, int, int | None] = (None, 0, None),
    target: str = "",
) -> KernelPage:
    """Return a kernel (12 queries, one more with a report). Raises
    ``GeneratedKernel.DoesNotExist``.

    ``build_id`` and ``node_id`` select the build and the use to show; by default, or if they are
    not this kernel's, the first build with instructions for ``target``, else for a target that the
    kernel was measured on, else of all, and the first use that was measured. The headline is a time
    for the use's problem.
    ``sizes`` is the index of the known sizes for the limits, ``view`` names the build's text that
    is its listing. ``model`` is the modelling shown with its build, its launch, and the start of
    its timeline; by default, or if it is not this kernel's, the newest of the build's.
    """
    kernel = GeneratedKernel.objects.get(name=name)
    uses, results = _uses(kernel), _results(kernel)
    measured = {row.problem_id for row in results}
    measured_uses = [use for use in uses if use.problem_id in measured]
    selected_uses = [use for use in uses if use.node_id == node_id]
    use = next(iter([*selected_uses, *measured_uses, *uses]), None)
    build_rows = (
        _build_row(kernel, build)
        for build in Build.objects.filter(kernel=kernel)
        .select_related("listing", "code_object", "intermediate")
        .order_by("target", "-created_at")
    )
    # The emulation's build is the least useful to read: it comes last.
    builds = tuple(
        sorted(build_rows, key=lambda row: (bool(targets.find(row.target).emulates), row.target))
    )
    rows = modelled_rows(kernel.pk)
    model_id, launch, at = model
    build_id = next((row.build for row in rows if row.id == model_id and row.is_shown), build_id)
    requested = [row for row in builds if row.id == build_id]
    measured_on = {row.environment.target for row in results if not row.emulated}
    complete = sorted(
        (row for row in builds if row.state == State.DONE or row.listing_digest),
        key=lambda row: (row.target not in measured_on, row.state != State.DONE),
    )
    of_target = [row for row in [*complete, *builds] if row.target == target]
    build = next(iter([*requested, *of_target, *complete, *builds]), None)
    views = build.views if build else ()
    shown_view = view if view in views else next(iter(views), "")
    digests = {
        digest
        for row in builds
        for digest in (row.listing_digest, row.intermediate_digest)
        if digest
    }
    paths = dict(Artifact.objects.filter(digest__in=digests).values_list("digest", "path"))
    listing = None  # or its file is missing
    if build is not None:
        is_first = not views or shown_view == views[0]
        digest = build.listing_digest if is_first else build.intermediate_digest
        with suppress(FileNotFoundError):
            if digest in paths:
                listing = _cached_listing(paths[digest], digest, build.target)
    of_build = [row for row in rows if build and row.build == build.id and row.is_shown]
    never = datetime.min.replace(tzinfo=UTC)
    newest = max(of_build, key=lambda row: (row.finished_at or never, row.id), default=None)
    modelled_row = next((row for row in of_build if row.id == model_id), newest)
    report = load_report(modelled_row.id) if modelled_row else None
    modelled = modelled_view(report, listing, launch, at) if report else None
    of_problem = [row for row in results if use is None or row.problem_id == use.problem_id]
    counting = _counting(of_problem, build.target if build else "")
    return KernelPage(
        name=kernel.name,
        url=kernel.get_absolute_url(),
        template=kernel.template,
        config=kernel.config,
        language=language_of(kernel.source_file),
        source=kernel.source,
        source_file=kernel.source_file,
        source_digest=kernel.source_digest,
        args=tuple(kernel.args),
        launches=tuple(kernel.launches),
        workspace_bytes=kernel.workspace_bytes,
        uses=uses,
        use=use,
        builds=builds,
        build=build,
        missing_target=target if target and not of_target and not requested else "",
        view=shown_view,
        resources=tuple(_resource_rows(builds, paths)),
        listing=listing,
        modelled=KernelModelling(rows, modelled_row, modelled),
        provenance=_provenance(use, modelled) if use else (),
        results=tuple(map(_result_row, results)),
        counting=_result_row(counting) if counting else None,
        choice=kernel_choice(kernel, counting) if counting else None,
        compare_url=_compare_url(kernel, build, use),
        limits=limits(
            *(use.problem_id, sizes, kernel.pk), rows, first=build.target if build else ""
        )
        if use
        else None,
    )


# Files are addressed by the digest of their content, so a parsed result stays valid.
@lru_cache(maxsize=4)
def _cached_listing(path: str, digest: str, target: str) -> ListingView:
    return read_listing(_text(path, digest), targets.find(target))


@lru_cache(maxsize=1024)
def _next_steps(path: str, digest: str, target: str, resources: str) -> Mapping[str, str]:
    """``resources`` is JSON: some limits of occupancy are not in the listing, and some rules need
    no listing (``path`` is "" if there is none)."""
    text = _text(path, digest) if path else ""
    return next_steps(text, json.loads(resources), targets.find(target))


def _text(path: str, digest: str) -> str:
    return files.read(path, digest).decode("utf-8", errors="replace")


def kernel_listing(name: str, build_id: int, view: str = "") -> ListingView:
    """Return a build's listing, or another of its texts (1 query). Raises
    ``Build.DoesNotExist``."""
    build = Build.objects.select_related("listing", "intermediate", "kernel").get(
        kernel__name=name, pk=build_id, listing__isnull=False
    )
    title = recipe_of(targets.find(build.target), build.kernel.source_file).intermediate_title
    intermediate = build.intermediate if view and view == title.lower() else None
    file = intermediate or build.listing
    assert file is not None
    return _cached_listing(file.path, file.digest, build.target)


def _resource_rows(
    builds: tuple[BuildRow, ...], listing_paths: Mapping[str, str]
) -> Iterator[ResourceRow]:
    for build in builds:
        target = targets.find(build.target)
        occupancy = rules_of(target)
        next_steps: Mapping[str, str] = {}
        if build.resources:
            path = listing_paths.get(build.listing_digest, "")
            resources_json = json.dumps(build.resources, sort_keys=True)
            with suppress(FileNotFoundError):
                next_steps = _next_steps(path, build.listing_digest, build.target, resources_json)
        for function, resources in build.resources.items():
            yield ResourceRow(
                build=build.id,
                target=build.target,
                note="elsewhere" if build.elsewhere else "",
                function=function,
                waves=occupancy.waves(resources) if occupancy else 0,
                max_waves=occupancy.max_waves(target) if occupancy else 0,
                resources=resources,
                next_step=next_steps.get(function, ""),
                hazards=occupancy.hazards(resources, target) if occupancy else (),
            )


def _provenance(use: UseRow, modelled: ModelledView | None) -> tuple[ProvenanceRow, ...]:
    """Return each graph node of the use with its lines, in the order of the source."""
    lines = lines_by_node(use.line_origins)
    names = sorted({*use.links, *lines}, key=lambda name: (lines.get(name, ((10**9, 0),)), name))
    return tuple(
        ProvenanceRow(
            name,
            use.links.get(name, ""),
            lines.get(name, ()),
            modelled.share_of(lines.get(name, ())) if modelled else None,
        )
        for name in names
    )


def _uses(kernel: GeneratedKernel) -> tuple[UseRow, ...]:
    """Return the nodes that it can serve, with the addresses of the graph nodes (2 queries)."""
    rows = (
        KernelUse.objects.filter(kernel=kernel)
        .select_related("template_node__graph", "template_node__problem")
        .defer("template_node__graph__tensors", "template_node__graph__wrapper")
        .prefetch_related("template_node__graph_nodes")
        .order_by("template_node")
    )
    uses = []
    for use in rows:
        node = use.template_node
        graph_url = node.graph.get_absolute_url()
        row = UseRow(
            node_id=node.pk,
            problem_id=node.problem_id,
            node=node.name,
            op=node.op,
            url=node.get_absolute_url(),
            graph=node.graph.name,
            graph_url=graph_url,
            problem=node.problem.summary if node.problem else "",
            symbols=node.problem.symbols if node.problem else {},
            is_default=use.is_default,
            description=use.description,
            metadata_comment=use.metadata_comment,
            line_origins=tuple(use.line_origins),
            links={
                member.name: f"{graph_url}?node={member.name}" for member in node.graph_nodes.all()
            },
            model_lines=_model_lines(node.graph_nodes.all()),
        )
        uses.append(row)
    return tuple(uses)


def _model_lines(members: Iterable[GraphNode]) -> tuple[ModelLine, ...]:
    """Return the model's own line of each graph node, each once, in the graph's order."""
    lines: dict[tuple[str, int], ModelLine] = {}
    for member in sorted(members, key=lambda member: member.position):
        if (frame := own_frame(member.frames)) is not None:
            key = str(frame["file"]), int(frame["line"])
            line = ModelLine(*key, frame["function"], frame["code"], member.module_path)
            lines.setdefault(key, line)
    return tuple(lines.values())


def _build_row(kernel: GeneratedKernel, build: Build) -> BuildRow:
    recipe = recipe_of(targets.find(build.target), kernel.source_file)
    is_done = build.state == State.DONE
    lacks_code = is_done and bool(recipe.code_object_file) and build.code_object is None
    intermediate = build.intermediate if build.intermediate_id != build.listing_id else None
    titles = (recipe.listing_title, recipe.intermediate_title)

    def url(file: str) -> str:
        return reverse("kernel_download", args=[kernel.name, build.pk, file])

    return build_row(
        BuildRow,
        build,
        id=build.pk,
        version=build.toolchain_version,
        flags=tuple(build.flags),
        diagnostics=tuple(build.diagnostics),
        log=build.log or build.detail,
        listing_digest=build.listing.digest if build.listing else "",
        intermediate_digest=intermediate.digest if intermediate else "",
        views=tuple(title.lower() for title in titles) if intermediate else (),
        remark=recipe.without_code_object if lacks_code else "",
        listing_title=recipe.intermediate_title if lacks_code else recipe.listing_title,
        intermediate_title=recipe.intermediate_title,
        code_object_title=recipe.code_object_title,
        listing_url=url(recipe.listing_file) if build.listing else "",
        intermediate_url=url(recipe.intermediate_file) if intermediate else "",
        code_object_url=url(recipe.code_object_file) if build.code_object else "",
        library_url=url(recipe.library_file) if build.library_id else "",
        offline_url=url("kernel.html") if build.listing else "",
    )


def _results(kernel: GeneratedKernel) -> list[BenchmarkResult]:
    """Return the latest measurements (1 query)."""
    return list(
        BenchmarkResult.objects.filter(kernel=kernel)
        .select_related("environment", "problem", "build", WITH_ORIGIN)
        .defer("build__log")
        .order_by("-created_at", "-pk")[:200]
    )


def _counting(results: Iterable[BenchmarkResult], target: str) -> BenchmarkResult | None:
    """Return the measurement of the page's headline time: preferably on that target, then with
    enough samples to compare, then the latest."""

    def rank(row: BenchmarkResult) -> tuple[bool, bool]:
        return row.environment.target == target, len(row.samples_ns) >= MIN_SAMPLES

    return max(results, key=rank, default=None)


def _result_row(row: BenchmarkResult) -> ResultRow:
    return build_row(
        ResultRow,
        row,
        id=row.pk,
        problem=str(row.problem),
        device=row.environment.device_name,
        target=row.environment.target,
        metrics=metrics_of(row),
        rejected=len(row.rejected_samples),
        drift=None,
    )


def _compare_url(kernel: GeneratedKernel, build: BuildRow | None, use: UseRow | None) -> str:
    """Return the URL of the comparison with the node's default kernel, built for the same target
    (1 query); "" if this is the default, or one of both is not built."""
    if build is None or use is None or use.is_default or not build.is_comparable:
        return ""
    default = Build.objects.filter(
        WITH_FIGURES,
        kernel__uses__template_node=use.node_id,
        kernel__uses__is_default=True,
        target=build.target,
    ).exclude(kernel=kernel)
    pk = default.order_by("-created_at").values_list("pk", flat=True).first()
    return f"{reverse('compare')}?build={pk}&build={build.id}" if pk else ""
