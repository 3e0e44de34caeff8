"""Speed of light: the minimum time of a problem on each target's boards, and the ratio of measured
times to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

from codegen_app.kernels.modelled.rows import ModelledRow
from codegen_app.kernels.models import ProblemWork
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.models.benchmark_result import WITH_ORIGIN
from codegen_app.tuning.queries.measured_row import MeasuredRow, metrics_of
from codegen_app.tuning.queries.measurements import current_measurement
from codegen_app.web.row import build_row
from scheduler import targets
from scheduler.targets import Board
from scheduler.tuning import roofline
from scheduler.tuning.work import Work

_MAX_RESULTS = 2000
_NEAR_LIMIT = 1.5
BOUND_TEXTS = {"memory": "memory bandwidth", "products": "matrix rate"}


@dataclass(frozen=True)
class MeasuredPoint(MeasuredRow):
    """The current measurement of a kernel on a GPU. ``roofline`` is the ratio of the board's lower
    bound ``least_ns`` to the time, None if the board is not in the table; ``bound`` is the resource
    that sets it (memory, products). ``memory_share`` and ``products_share`` are the used parts of
    the board's bandwidth and matrix rate."""

    result: int
    kernel: str
    url: str
    device: str
    target: str
    board: str
    bindings: Mapping[str, int]
    intensity: float | None
    operations_per_s: float | None
    roofline: float | None
    least_ns: float | None
    bound: str
    memory_share: float | None
    products_share: float | None

    @property
    def is_near_limit(self) -> bool:
        """Whether it takes at most ``_NEAR_LIMIT`` times its lower bound."""
        return self.roofline is not None and self.roofline >= 1 / _NEAR_LIMIT

    @property
    def bound_text(self) -> str:
        """The resource that sets its lower bound; "" if that is unknown."""
        return BOUND_TEXTS.get(self.bound, "")


@dataclass(frozen=True)
class BoardTime:
    """A modelled time of a kernel on a board, in ns; never a measurement."""

    board: str
    target: str
    time_ns: float
    operations_per_s: float | None
    roofline: float | None
    url: str


@dataclass(frozen=True)
class LimitRow:
    """A board; the ``reference`` one stands for its target. Times in nanoseconds per launch;
    ``peak`` is operations per second, None if no rate is published for the dtype; ``best`` is the
    fastest kernel's measurement there."""

    target: str
    board: str
    reference: bool
    bytes_per_s: int
    peak: float | None
    memory_ns: float
    products_ns: float
    least_ns: float
    bound: str
    best: MeasuredPoint | None
    sources: tuple[str, ...]
    modelled: BoardTime | None = None


@dataclass(frozen=True)
class Sizes:
    """A binding for which the work is known."""

    place: int
    bindings: Mapping[str, int]


@dataclass(frozen=True)
class Limits:
    """A problem at one binding of its sizes. ``emulated``: there are times of the CPU emulation,
    which are never compared with a GPU's limits."""

    place: int
    sizes: tuple[Sizes, ...]
    work: Mapping[str, Any]
    bytes: int
    operations: int
    dtype: str
    unit: str
    intensity: float | None
    boards: tuple[LimitRow, ...]
    points: tuple[MeasuredPoint, ...]
    emulated: bool

    @property
    def is_measured(self) -> bool:
        """Whether any board has a measurement at these sizes."""
        return any(row.best for row in self.boards)

    @property
    def is_modelled(self) -> bool:
        """Whether any board has a modelled time at these sizes."""
        return any(row.modelled for row in self.boards)

    @property
    def has_products(self) -> bool:
        """Whether the matrix rate can be the limit on any board."""
        return any(row.products_ns for row in self.boards)

    @property
    def bindings(self) -> Mapping[str, int]:
        """The displayed sizes."""
        return self.sizes[self.place].bindings


def limits(
    problem: int | None,
    place: int = 0,
    kernel: int | None = None,
    modelled: Sequence[ModelledRow] = (),
    first: str = "",
) -> Limits | None:
    """Return the limits of boards for a problem (2 queries); None if its work is unknown.

    ``place`` is the index of the recorded sizes, the model's own example first; ``kernel`` excludes
    other kernels' measurements. ``modelled`` are the modelled times of the kernel; the boards of
    the target ``first`` come first.
    """
    rows = list(ProblemWork.objects.filter(problem=problem).order_by("pk")) if problem else []
    if not rows or problem is None:
        return None
    place = place if place < len(rows) else 0
    work = _work(rows[place])
    by_bindings = {_key(row.bindings): _work(row) for row in rows}
    used, shown_sizes = rows[0].bindings, _key(rows[place].bindings)
    results = _current_results(problem, kernel)
    points: list[MeasuredPoint] = []
    for result in results:
        if result.emulated:
            continue
        environment, time_ns = result.environment, result.median_ns
        board = targets.board_of(environment.target, environment.device_name)
        point_work = by_bindings.get(_key(result.bindings, used))
        limit = roofline.limit(point_work, board) if point_work and board else None
        point_intensity = roofline.intensity(point_work) if point_work else None
        point = build_row(
            MeasuredPoint,
            result,
            result=result.pk,
            kernel=result.kernel.name,
            url=result.kernel.get_absolute_url(),
            device=environment.device_name,
            target=environment.target,
            board=board.name if board else "",
            metrics=metrics_of(result),
            drift=None,
            intensity=point_intensity.per_byte if point_intensity else None,
            operations_per_s=1e9 * point_intensity.operations / time_ns
            if point_intensity
            else None,
            roofline=limit.least_ns / time_ns if limit else None,
            least_ns=limit.least_ns if limit else None,
            bound=limit.bound if limit else "",
            memory_share=limit.memory_ns / time_ns if limit else None,
            products_share=limit.products_ns / time_ns if limit else None,
        )
        points.append(point)
    here = [point for point in points if _key(point.bindings, used) == shown_sizes]
    modelled_here = [
        row
        for row in modelled
        if row.is_shown and row.time_us and _key(row.sizes, used) == shown_sizes
    ]
    intensity = roofline.intensity(work)
    return Limits(
        place=place,
        sizes=tuple(Sizes(number, row.bindings) for number, row in enumerate(rows)),
        work=asdict(work),
        bytes=work.bytes,
        operations=intensity.operations if intensity else 0,
        dtype=intensity.dtype if intensity else "",
        unit=intensity.unit if intensity else "",
        intensity=intensity.per_byte if intensity else None,
        boards=tuple(
            _board_row(board, work, here, modelled_here)
            for name in sorted(targets.names(), key=lambda name: name != first)
            for board in targets.boards(name)
        ),
        points=tuple(points),
        emulated=any(result.emulated for result in results),
    )


def _work(row: ProblemWork) -> Work:
    return Work(
        row.read_bytes, row.written_bytes, row.matrix_flops, row.matrix_dtype, row.vector_ops
    )


def works_at(problems: Collection[int], bindings: Mapping[str, int]) -> dict[int, Work]:
    """Return the work of these problems at these sizes, where it is known (1 query)."""
    rows = ProblemWork.objects.filter(problem__in=problems)
    return {
        row.problem_id: _work(row)
        for row in rows
        if all(bindings.get(name) == size for name, size in row.bindings.items())
    }


def _key(bindings: Mapping[str, int], used: Mapping[str, int] | None = None) -> str:
    """Return a comparable key of the bindings of the symbols that the problem uses."""
    return str(sorted((k, v) for k, v in bindings.items() if used is None or k in used))


def _current_results(problem: int, kernel: int | None) -> list[BenchmarkResult]:
    """Return the current measurement of each kernel in each bucket, as on every other page, from
    the latest ``_MAX_RESULTS`` measurements."""
    rows = BenchmarkResult.objects.filter(problem=problem)
    if kernel is not None:
        rows = rows.filter(kernel=kernel)
    buckets: dict[tuple[object, ...], list[BenchmarkResult]] = defaultdict(list)
    for row in (
        rows.select_related("environment", "kernel", "build", WITH_ORIGIN)
        .defer("kernel__source", "rejected_samples", "check_detail", "build__log")
        .order_by("-pk")[:_MAX_RESULTS]
    ):
        device = row.environment.device_name, row.environment.target
        compiler = row.build.toolchain, row.build.toolchain_version
        key = (row.kernel_id, *device, row.origin, _key(row.bindings), *compiler)
        buckets[key].append(row)
    current = filter(None, map(current_measurement, buckets.values()))
    return sorted((measured.result for measured in current), key=lambda row: row.median_ns)


def _board_row(
    board: Board, work: Work, points: Sequence[MeasuredPoint], modelled: Sequence[ModelledRow]
) -> LimitRow:
    """Return a board's limits with the best measurement and the lowest modelled time on it."""
    limit, intensity = roofline.limit(work, board), roofline.intensity(work)
    key = board.name, board.target
    measured_here = [point for point in points if (point.board, point.target) == key]
    times = [
        (row.time_us, row) for row in modelled if (row.board, row.target) == key and row.time_us
    ]
    lowest = None
    if times:  # of equal times the first row, the latest modelling
        time_us, fastest = min(times, key=itemgetter(0))
        time_ns = 1000 * time_us
        lowest = BoardTime(
            board=board.name,
            target=board.target,
            time_ns=time_ns,
            operations_per_s=1e9 * intensity.operations / time_ns if intensity else None,
            roofline=limit.least_ns / time_ns,
            url=fastest.url,
        )
    return build_row(
        LimitRow,
        limit,
        target=board.target,
        board=board.name,
        reference=board == targets.boards(board.target)[0],
        bytes_per_s=board.memory_bytes_per_s,
        peak=roofline.peak(intensity, board) if intensity else None,
        best=min(measured_here, key=lambda point: point.time.value, default=None),
        sources=board.sources,
        modelled=lowest,
    )
