"""Which kernel is selected for a problem on a kind of device: the winner, with its history.

Every toolchain, and every binding of the symbolic sizes, is a bucket with its own choice. A
bucket's toolchain is that of the target's base language, whatever language the winner is in.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.kernels.modelling import automatic
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.tuning.models import BenchmarkResult, Selection, TuningRun
from codegen_app.tuning.queries.serving import base_source_file, toolchain_of
from codegen_app.tuning.services import selection_policy
from scheduler.errors import UserError


def offer(
    result: BenchmarkResult, run_name: str, offered: Collection[str] | None = None
) -> tuple[Selection, str]:
    """Select a run's winner for its problem if it is better than the selected kernel. Return the
    current selection, and why it is or is not the winner's kernel, for the run's ledger.

    A new kernel replaces another only for a gain beyond the noise: its interval must lie below the
    other's, and have enough samples. The run must have timed both (``selection_policy.compare``,
    also for ``offered``). Part of the transaction that records the result.
    """
    device = result.environment
    bucket = {
        "problem_id": result.problem_id,
        "target": device.target,
        "device_name": device.device_name,
        "toolchain": bucket_toolchain(result),
        "bindings": result.bindings,
    }
    serving = _current(bucket)
    is_better, why = selection_policy.compare(result, serving, offered)
    if serving is not None and not is_better:
        known = serving.result
        has_more_samples = known is None or len(result.samples_ns) > len(known.samples_ns)
        if serving.kernel_id == result.kernel_id and has_more_samples:
            serving.result = result  # for comparison with later winners
            serving.save(update_fields=["result"])
        return serving, why
    chosen = _replace(
        serving,
        bucket,
        kernel=result.kernel,
        result=result,
        reason=fastest_in(run_name),
    )
    return chosen, why


def fastest_in(run_name: str) -> str:
    """Return the reason of a selection that a run made."""
    return f"fastest in {run_name}"[:300]


@transaction.atomic
def put_back(
    run: TuningRun, keys: Collection[int], actor: AbstractBaseUser | None, why: str = ""
) -> list[Selection]:
    """Restore what a run replaced by its selections of these numbers, all or none. Raises
    ``UserError`` if there is nothing to restore."""
    restored = []
    for key in keys:
        selection = Selection.objects.filter(pk=key, reason=fastest_in(f"run {run.pk}")).first()
        if selection is None:
            raise UserError(f"run {run.pk} made no selection {key}")
        if selection.until is not None:
            raise UserError(f"{selection.kernel.name} is no longer selected")
        previous = Selection.objects.filter(**selection.bucket, until=selection.since).first()
        if previous is None:
            raise UserError(f"no kernel was selected before {selection.kernel.name}")
        restored.append(restore(previous, actor, why))
    if not restored:
        raise UserError("choose at least one kernel to replace")
    return restored


@transaction.atomic
def restore(selection: Selection, actor: AbstractBaseUser | None, why: str = "") -> Selection:
    """Select an earlier choice again, until a run finds a better one.

    Raises ``UserError`` if it is selected already.
    """
    bucket = selection.bucket
    serving = _current(bucket)
    if serving is not None and serving.kernel_id == selection.kernel_id:
        raise UserError(f"{selection.kernel.name} is already selected for this problem")
    chosen = _replace(
        serving,
        bucket,
        kernel=selection.kernel,
        result=selection.result,
        reason=f"put back{f': {why}' if why else ''}"[:300],
        chosen_by_id=audit.actor_id(actor),
    )
    audit.record(actor, "put back", chosen, why)
    return chosen


def choose(
    bucket: dict[str, Any], kernel: GeneratedKernel, reason: str, actor: AbstractBaseUser | None
) -> bool:
    """Select a kernel that a person chose; return False if it is selected. In a transaction."""
    serving = _current(bucket)
    if serving is not None and serving.kernel_id == kernel.pk:
        return False
    measurement = selection_policy.find_measurement(bucket, kernel)
    _replace(
        serving,
        bucket,
        kernel=kernel,
        result=measurement.result if measurement else None,
        reason=reason[:300],
        chosen_by_id=audit.actor_id(actor),
    )
    return True


def bucket_toolchain(result: BenchmarkResult) -> str:
    """Return the compiler of a result's bucket: that of the target's base language, which built the
    task's other candidates."""
    base = base_source_file(result.environment.target)
    if result.kernel.source_file == base or result.task_id is None:
        return toolchain_of(result.build)
    rivals = Build.objects.filter(candidates__task=result.task_id, kernel__source_file=base)
    rival = rivals.order_by("candidates__position").first()
    return toolchain_of(rival or result.build)


def _current(bucket: dict[str, Any]) -> Selection | None:
    rows: QuerySet[Selection] = Selection.objects.select_for_update(of=("self",))
    return rows.select_related("result", "kernel").filter(**bucket, until__isnull=True).first()


def _replace(serving: Selection | None, bucket: dict[str, Any], **fields: Any) -> Selection:
    now = timezone.now()
    if serving is not None:
        now = max(now, serving.since)  # the clock may have been set back
        serving.until = now
        serving.save(update_fields=["until"])
    selection = Selection.objects.create(**bucket, since=now, **fields)
    if (result := selection.result) is not None:
        automatic.model_selected(
            result.build,
            selection.problem,
            selection.bindings,
            selection.target,
            selection.device_name,
        )
    return selection
