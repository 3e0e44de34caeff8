"""Why a kernel is or is not selected where it was measured, and which kernel comes next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codegen_app.kernels.models import GeneratedKernel
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.models.benchmark_result import WITH_ORIGIN
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.tuning.queries.measurements import current_measurement, measurement_fields
from codegen_app.tuning.queries.serving import (
    bucket_results,
    current_selections,
    is_in_bucket,
    same_sizes,
    toolchain_of,
)
from codegen_app.web.row import build_row


@dataclass(frozen=True)
class OtherKernel(MeasuredRow):
    """Another kernel for the same problem. ``ratio`` is its time divided by the page's kernel's;
    ``overlaps`` means that the bounds of both overlap; ``differences`` are the parameters with
    another value, (name, its value, the other's)."""

    kernel: str
    url: str
    ratio: float
    overlaps: bool
    differences: tuple[tuple[str, Any, Any], ...]

    @property
    def change_text(self) -> str:
        """How much longer or shorter it takes."""
        percent = 100 * (self.ratio - 1)
        return f"{abs(percent):.1f}% {'slower' if percent >= 0 else 'faster'}"


@dataclass(frozen=True)
class KernelChoice:
    """A kernel among those measured for its problem on one device model, target, compiler and
    sizes: the bucket with the latest selection. ``toolchain`` is its compiler if another compiler
    has a selection, too, else "". ``reason`` is why the selected kernel was selected, "" if none
    is; ``run`` is the URL of the run that selected it. ``preferred`` is the selected kernel if it
    is another one, ``next`` the fastest of the others; ``measured`` counts the kernels with a
    time."""

    device: str
    toolchain: str
    is_selected: bool
    reason: str
    run: str
    preferred: OtherKernel | None
    next: OtherKernel | None
    measured: int

    @property
    def place(self) -> str:
        """The device, with the compiler where it is not the only one."""
        return f"{self.device} with {self.toolchain}" if self.toolchain else self.device


def kernel_choice(kernel: GeneratedKernel, result: BenchmarkResult) -> KernelChoice:
    """Return the choice where a result of the kernel was measured (2 queries): the latest, if the
    kernel's language has one compiler and the target's own several. The result comes with its
    build, problem and environment."""
    selections = [
        row
        for row in current_selections([result.problem_id])
        .select_related("problem", "kernel", "result__environment", "result__task__run")
        .filter(device_name=result.environment.device_name, target=result.environment.target)
        if same_sizes(row.bindings, result.bindings, row.problem.symbols)
    ]
    in_bucket = (
        row for row in reversed(selections) if is_in_bucket(row, result, result.build, kernel)
    )
    selection = next(in_bucket, None)
    toolchain = selection.toolchain if selection else toolchain_of(result.build)
    rows = bucket_results(result.environment.device_name, result.environment.target, toolchain)
    by_kernel: dict[int, list[BenchmarkResult]] = defaultdict(list)
    for row in (
        rows.filter(problem=result.problem_id)
        .select_related("environment", "kernel", WITH_ORIGIN)
        .defer("kernel__source", "rejected_samples", "check_detail", "readings")
    ):
        if same_sizes(row.bindings, result.bindings, result.problem.symbols):
            by_kernel[row.kernel_id].append(row)
    others = {
        pk: other
        for pk, results in by_kernel.items()
        if pk != kernel.pk and (other := _other_kernel(kernel, result, results)) is not None
    }
    is_selected = selection is not None and selection.kernel_id == kernel.pk
    task = selection.result.task if selection and selection.result else None
    return KernelChoice(
        device=result.environment.device_name,
        toolchain=toolchain if {row.toolchain for row in selections} - {toolchain} else "",
        is_selected=is_selected,
        reason=selection.reason if selection else "",
        run=task.run.get_absolute_url() if task else "",
        preferred=others.get(selection.kernel_id) if selection and not is_selected else None,
        next=min(others.values(), key=lambda other: other.ratio, default=None),
        measured=len(others) + 1,
    )


def _other_kernel(
    kernel: GeneratedKernel, result: BenchmarkResult, results: list[BenchmarkResult]
) -> OtherKernel | None:
    measured = current_measurement(results)
    if measured is None:
        return None
    other = measured.result
    return build_row(
        OtherKernel,
        other,
        kernel=other.kernel.name,
        url=other.kernel.get_absolute_url(),
        ratio=other.median_ns / result.median_ns,
        overlaps=other.low_ns <= result.high_ns and result.low_ns <= other.high_ns,
        differences=_differences(other.kernel.config, kernel.config),
        **measurement_fields(measured),
    )


def _differences(
    config: Mapping[str, Any], reference: Mapping[str, Any]
) -> tuple[tuple[str, Any, Any], ...]:
    names = dict.fromkeys([*reference, *config])
    return tuple(
        (name, config.get(name), reference.get(name))
        for name in names
        if config.get(name) != reference.get(name)
    )
