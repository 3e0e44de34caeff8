"""The kernel that serves a scheduled node and its time there: the one query for pages and bundles.

A time is valid only for one device model, architecture, compiler and binding of the sizes: these
four are a ``Bucket``, and nothing is selected or summed across buckets. Candidates in several
languages compete for a node: a bucket's compiler is that of the target's base language, and kernels
in other languages, with their own compilers, are in every bucket of their device, target and sizes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from django.db.models import F, Max, Q, QuerySet, Value
from django.db.models.functions import Concat, Left

from codegen_app.graphs.models import Problem, TemplateNode
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.tuning.models import BenchmarkResult, Selection, TuningRun
from codegen_app.tuning.models.benchmark_result import IMPORTED, WITH_ORIGIN
from codegen_app.tuning.models.result_import import origin_text
from codegen_app.tuning.queries.measurements import CurrentMeasurement, current_measurement
from scheduler import targets
from scheduler.build.recipe import recipe_of
from scheduler.ir.bindings import format_bindings

_DEFERRED = ("rejected_samples", "check_detail")


@dataclass(frozen=True)
class Bucket:
    """A device model, a target, a compiler and sizes. ``name`` combines all four and identifies the
    bucket in page addresses. ``origin`` has device, driver, date and commit of the latest times
    measured on another installation."""

    name: str
    device_name: str
    target: str
    toolchain: str
    bindings: Mapping[str, int]
    emulated: bool
    origin: str = ""

    @property
    def listing_target(self) -> str:
        """The target whose instructions explain its times; "" for the emulation, whose instructions
        explain nothing of a GPU."""
        return "" if self.emulated else self.target

    @property
    def imported(self) -> bool:
        """Whether its times were measured on another installation."""
        return self.device_name.endswith(IMPORTED)


@dataclass(frozen=True)
class ServedKernel:
    """The kernel that serves a node in a bucket: the selected one, else the generator's default.

    ``measured`` is its measurement there (``tuning/queries/measurements.py``), whichever run it was
    selected in.
    """

    kernel: GeneratedKernel
    selected: bool
    measured: CurrentMeasurement | None


@dataclass(frozen=True)
class NodeBuckets:
    """The buckets in which the problems of nodes were measured or have a selected kernel, and the
    selections.

    Order of ``buckets``: GPUs before the emulation, local ones before imported ones, then the
    latest first.
    """

    nodes: tuple[TemplateNode, ...]
    buckets: tuple[Bucket, ...]
    selected: tuple[Selection, ...]

    def find(self, name: str) -> Bucket | None:
        """Return the bucket of that name, else the first; None if there are none."""
        named = (bucket for bucket in self.buckets if bucket.name == name)
        return next(named, next(iter(self.buckets), None))

    def selections(self, bucket: Bucket | None) -> dict[int, Selection]:
        """Return the selections of a bucket by problem."""
        if bucket is None:
            return {}
        symbols = _symbols(self.nodes)
        where = (bucket.device_name, bucket.target, bucket.toolchain)
        return {
            row.problem_id: row
            for row in self.selected
            if (row.device_name, row.target, row.toolchain) == where
            and same_sizes(row.bindings, bucket.bindings, symbols[row.problem_id])
        }


def node_buckets(nodes: Iterable[TemplateNode]) -> NodeBuckets:
    """Return the buckets and selections of these nodes' problems (2 queries). Sizes that no problem
    uses are left out of buckets."""
    nodes = tuple(nodes)
    problems = {node.problem.pk: node.problem for node in nodes if node.problem is not None}
    used = frozenset(name for problem in problems.values() for name in problem.symbols)
    selected = tuple(current_selections(problems))
    return NodeBuckets(nodes, rank_buckets(bucket_rows(problems), selected, used), selected)


def rank_buckets(
    measured_rows: Iterable[Mapping[str, Any]],
    selected: Iterable[Selection],
    used: Collection[str],
) -> tuple[Bucket, ...]:
    """Return the buckets of measured rows (``bucket_rows``) and selections. Order: local device
    buckets before emulated or imported ones, then those with the most problems that have a
    selection (a sum over two of many nodes says little), then the latest. Sizes are limited to
    ``used``."""
    latest: dict[str, tuple[datetime, Bucket]] = {}
    chosen: list[tuple[Bucket, datetime]] = []
    for row in selected:
        # An imported selection has no measurement here.
        emulated = row.result.emulated if row.result else bool(targets.find(row.target).emulates)
        where = (row.device_name, row.target, row.toolchain)
        chosen.append((_bucket(*where, row.bindings, used, emulated), row.since))
    choices = Counter(bucket.name for bucket, _ in chosen)
    dated = [*_measured_buckets(measured_rows, used), *chosen]
    for bucket, at in dated:
        before = latest.get(bucket.name, (at, bucket))
        newest = max(before, (at, bucket), key=lambda pair: (pair[1].origin != "", pair[0]))
        latest[bucket.name] = max(at, before[0]), newest[1]
    ranked = sorted(latest.values(), key=lambda pair: pair[0], reverse=True)
    return tuple(
        sorted(
            (bucket for _, bucket in ranked),
            key=lambda bucket: (bucket.emulated, bucket.imported, -choices[bucket.name]),
        )
    )


def served_kernels(known: NodeBuckets, bucket: Bucket | None) -> dict[int, ServedKernel]:
    """Return the kernel that serves each node in a bucket, by the node's key (2 queries). Extern
    calls are left out.

    Without a bucket (nothing was measured) the defaults serve.
    """
    nodes, selected = known.nodes, known.selections(bucket)
    default = {
        use.template_node_id: use.kernel
        for use in KernelUse.objects.filter(template_node__in=nodes, is_default=True)
        .select_related("kernel")
        .only("template_node_id", "kernel__name")
    }
    selections = {node.pk: selected.get(node.problem_id or 0) for node in nodes}
    kernels = {
        pk: selection.kernel if selection is not None else default.get(pk)
        for pk, selection in selections.items()
    }
    kernel_ids = [kernel.pk for kernel in kernels.values() if kernel is not None]
    times = measurements(nodes, bucket, kernel_ids)
    return {
        node.pk: ServedKernel(
            kernel, selections[node.pk] is not None, times.get((node.problem_id or 0, kernel.pk))
        )
        for node in nodes
        if (kernel := kernels[node.pk]) is not None
    }


def measurements(
    nodes: Iterable[TemplateNode], bucket: Bucket | None, kernels: Iterable[int]
) -> dict[tuple[int, int], CurrentMeasurement]:
    """Return the measurement in a bucket of each problem and kernel, by their keys (1 query)."""
    if bucket is None:
        return {}
    symbols = _symbols(nodes)
    rows = bucket_results(bucket.device_name, bucket.target, bucket.toolchain).filter(
        problem__in=symbols, kernel__in=kernels
    )
    by_kernel: dict[tuple[int, int], list[BenchmarkResult]] = defaultdict(list)
    for row in _with_environment(rows):
        if same_sizes(row.bindings, bucket.bindings, symbols[row.problem_id]):
            by_kernel[row.problem_id, row.kernel_id].append(row)
    current = {key: current_measurement(results) for key, results in by_kernel.items()}
    return {key: measured for key, measured in current.items() if measured is not None}


def selection_measurements(selections: Iterable[Selection]) -> dict[int, CurrentMeasurement]:
    """Return the measurement of each selected kernel in its selection's bucket, by the selection's
    key (1 query). Selections come with their problems."""
    selections = tuple(selections)
    rows = BenchmarkResult.objects.filter(
        problem__in={selection.problem_id for selection in selections},
        kernel__in={selection.kernel_id for selection in selections},
    )
    rows = _with_environment(rows.select_related("build", "kernel"))
    by_kernel: dict[tuple[int, int], list[BenchmarkResult]] = defaultdict(list)
    for row in rows.defer("build__log", "kernel__source", *_DEFERRED):
        by_kernel[row.problem_id, row.kernel_id].append(row)
    measured = {}
    for selection in selections:
        kernel_rows = by_kernel[selection.problem_id, selection.kernel_id]
        in_bucket = [
            row for row in kernel_rows if is_in_bucket(selection, row, row.build, row.kernel)
        ]
        if (current := current_measurement(in_bucket)) is not None:
            measured[selection.pk] = current
    return measured


def is_in_bucket(
    selection: Selection, result: BenchmarkResult, build: Build, kernel: GeneratedKernel
) -> bool:
    """Whether a measurement (with its environment) belongs to a selection's bucket."""
    in_base = kernel.source_file == base_source_file(selection.target)
    return (
        result.environment.device_name == selection.device_name
        and result.environment.target == selection.target
        and (toolchain_of(build) == selection.toolchain or not in_base)
        and same_sizes(result.bindings, selection.bindings, selection.problem.symbols)
    )


def toolchain_of(build: Build) -> str:
    """Return the compiler's name in a bucket."""
    return f"{build.toolchain} {build.toolchain_version}"[:240]


def _with_environment(rows: QuerySet[BenchmarkResult]) -> QuerySet[BenchmarkResult]:
    return rows.select_related("environment", WITH_ORIGIN).defer(*_DEFERRED, "readings")


def bucket_results(device_name: str, target: str, toolchain: str) -> QuerySet[BenchmarkResult]:
    """Return measurements on a device model of code from this compiler, and of kernels in languages
    other than the target's own, which have other compilers."""
    return BenchmarkResult.objects.alias(toolchain=_TOOLCHAIN).filter(
        Q(toolchain=toolchain) | ~Q(kernel__source_file=base_source_file(target)),
        environment__device_name=device_name,
        environment__target=target,
    )


def recorded_targets(nodes: Iterable[TemplateNode]) -> tuple[str, ...]:
    """Return the targets for which the legality of these nodes is recorded."""
    recorded = {name for node in nodes for name in node.legal}
    return tuple(name for name in targets.names() if name in recorded)


def shown_target(recorded: Sequence[str], bucket: Bucket | None, requested: str = "") -> str:
    """Return the requested target if a graph's legality is recorded for it, else the bucket's, else
    the first recorded one; "" if there is none."""
    preferred = (requested, bucket.target if bucket is not None else "")
    return next((target for target in preferred if target in recorded), next(iter(recorded), ""))


def base_source_file(target: str) -> str:
    """Return the file name of a source in the target's base language."""
    return recipe_of(targets.find(target)).source_file


def smaller_buckets(
    buckets: Iterable[Bucket], bucket: Bucket
) -> tuple[tuple[str, int, Bucket], ...]:
    """Return buckets that differ only in one smaller size: the symbol, its value and the bucket,
    the smallest first. If several symbols qualify, only the first counts."""
    smaller = []
    for other in buckets:
        differs = [k for k, v in bucket.bindings.items() if other.bindings.get(k) != v]
        same = (other.device_name, other.target, other.toolchain) == (
            bucket.device_name,
            bucket.target,
            bucket.toolchain,
        )
        if same and len(differs) == 1 and other.bindings.keys() == bucket.bindings.keys():
            (symbol,) = differs
            if other.bindings[symbol] < bucket.bindings[symbol]:
                smaller.append((symbol, other.bindings[symbol], other))
    smaller.sort(key=itemgetter(0, 1))
    return tuple(row for row in smaller if row[0] == smaller[0][0])


# ``toolchain_of`` in SQL.
_TOOLCHAIN = Left(Concat("build__toolchain", Value(" "), "build__toolchain_version"), 240)


def _measured_buckets(
    rows: Iterable[Mapping[str, Any]], used: Collection[str]
) -> Iterable[tuple[Bucket, datetime]]:
    """Kernels in other languages get a bucket of their own only if the base language has none."""
    in_base: list[tuple[Bucket, datetime]] = []
    in_others: list[tuple[Bucket, datetime]] = []
    for row in rows:
        where = (row["device"], row["arch"], row["toolchain"])
        bucket = _bucket(*where, row["bindings"], used, row["emulated"])
        device, driver, measured_at, commit, version = (row[name] for name in _ORIGIN)
        if measured_at is not None:
            origin = origin_text(device, driver, measured_at, commit or version)
            bucket = replace(bucket, origin=origin)
        is_base = row["file"] == base_source_file(row["arch"])
        (in_base if is_base else in_others).append((bucket, row["latest"]))
    places = {_without_compiler(bucket) for bucket, _ in in_base}
    return [*in_base, *(pair for pair in in_others if _without_compiler(pair[0]) not in places)]


def _without_compiler(bucket: Bucket) -> tuple[str, str, str]:
    return bucket.device_name, bucket.target, format_bindings(bucket.bindings)


def bucket_rows(
    problems: Iterable[int], *group_by: str
) -> QuerySet[BenchmarkResult, dict[str, Any]]:
    """Return where these problems were measured and when last, also grouped by these columns (1
    query)."""
    return (
        BenchmarkResult.objects.filter(problem__in=problems)
        .order_by()
        .annotate(device=F("environment__device_name"), arch=F("environment__target"))
        .annotate(toolchain=_TOOLCHAIN, file=F("kernel__source_file"))
        .values("device", "arch", "toolchain", "file", "bindings", "emulated", *_ORIGIN, *group_by)
        .annotate(latest=Max("created_at"))
    )


_ORIGIN = tuple(
    f"{WITH_ORIGIN}__{name}"
    for name in ("device_name", "driver", "measured_at", "commit", "version")
)


def current_selections(problems: Iterable[int]) -> QuerySet[Selection]:
    """Return the current selections of these problems (1 query)."""
    return (
        Selection.objects.filter(problem__in=problems, until__isnull=True)
        .select_related("kernel", "result__environment")
        .defer("kernel__source", *(f"result__{name}" for name in _DEFERRED))
        .order_by("since", "pk")
    )


def selected_kernel(problem: Problem, run: TuningRun, device_name: str) -> str:
    """Return the kernel in use for a problem of a run on this device model, the latest selection if
    several compilers have one; "" if none is selected (1 query)."""
    rows = Selection.objects.filter(
        problem=problem, target=run.target, device_name=device_name, until__isnull=True
    )
    for bindings, kernel in rows.order_by("-since", "-pk").values_list("bindings", "kernel__name"):
        if same_sizes(bindings, run.bindings, problem.symbols):
            return str(kernel)
    return ""


def _bucket(
    device_name: str,
    target: str,
    toolchain: str,
    bindings: Mapping[str, int],
    used: Collection[str],
    emulated: bool,
) -> Bucket:
    sizes = {name: bindings[name] for name in sorted(bindings) if name in used}
    parts = (device_name, target, toolchain, format_bindings(sizes))
    name = ", ".join(part for part in parts if part)
    return Bucket(name, device_name, target, toolchain, sizes, emulated)


def _symbols(nodes: Iterable[TemplateNode]) -> dict[int, frozenset[str]]:
    """Return the sizes that each problem uses: others (of a larger graph) do not affect its
    time."""
    return {node.problem.pk: frozenset(node.problem.symbols) for node in nodes if node.problem}


def same_sizes(first: Mapping[str, int], second: Mapping[str, int], used: Iterable[str]) -> bool:
    """Whether two bindings agree in the sizes that a problem uses."""
    return all(first.get(name) == second.get(name) for name in used)
