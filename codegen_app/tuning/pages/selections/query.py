"""The selected kernel of each problem, and the earlier selections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from codegen_app.tuning.models import Selection
from codegen_app.tuning.models.benchmark_result import WITH_ORIGIN
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.tuning.queries.measurements import CurrentMeasurement, measurement_fields
from codegen_app.tuning.queries.serving import selection_measurements
from codegen_app.web.row import build_row

_MAX_PAST = 20


@dataclass(frozen=True)
class SelectedKernel(MeasuredRow):
    """A current or earlier selection of a bucket: the current one with its measurement there, an
    earlier one with the measurement that it was selected by."""

    id: int
    kernel: str
    kernel_url: str
    reason: str
    chosen_by: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True)
class SelectionBucket:
    """A problem on a device model, with a compiler, at sizes: the current and the earlier
    selections."""

    problem: str
    problem_digest: str
    target: str
    device_name: str
    toolchain: str
    bindings: Mapping[str, int]
    serving: SelectedKernel
    past: tuple[SelectedKernel, ...]


@dataclass(frozen=True)
class Selections:
    """The page of all selections."""

    buckets: tuple[SelectionBucket, ...]

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of selections measured on other installations."""
        return tuple(sorted({row.serving.origin for row in self.buckets if row.serving.origin}))


def selections() -> Selections:
    """Return all buckets (2 queries), by problem; of the earlier selections the latest of each."""
    rows = (
        Selection.objects.select_related("problem", "kernel", f"result__{WITH_ORIGIN}", "chosen_by")
        .defer("kernel__source", "problem__text")
        .order_by("problem__op", "problem__summary", "problem", "target", "-since", "-pk")
    )
    serving: dict[tuple[object, ...], Selection] = {}
    past: dict[tuple[object, ...], list[Selection]] = defaultdict(list)
    for row in rows:
        if row.until is None:
            serving[row.bucket_key] = row
        else:
            past[row.bucket_key].append(row)
    times = selection_measurements(serving.values())
    buckets = (
        build_row(
            SelectionBucket,
            row,
            problem=str(row.problem),
            problem_digest=row.problem.digest,
            serving=_choice(row, times.get(row.pk) or _selected_by(row)),
            past=tuple(_choice(old, _selected_by(old)) for old in past[key][:_MAX_PAST]),
        )
        for key, row in serving.items()
    )
    return Selections(tuple(buckets))


def _selected_by(row: Selection) -> CurrentMeasurement | None:
    return None if row.result is None else CurrentMeasurement(row.result)


def _choice(row: Selection, measured: CurrentMeasurement | None) -> SelectedKernel:
    return build_row(
        SelectedKernel,
        row,
        kernel=row.kernel.name,
        kernel_url=row.kernel.page_url(target=row.target),
        chosen_by=row.chosen_by.get_username() if row.chosen_by else "",
        **measurement_fields(measured),
    )
