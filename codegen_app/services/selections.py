"""Which kernel serves a problem on a kind of device: the winner, with its history."""

from __future__ import annotations

from django.utils import timezone

from codegen_app.models import BenchmarkResult, Selection


def offer(result: BenchmarkResult, run_name: str) -> Selection:
    """Let a run's winner serve its problem, if it is better than what serves now.

    A new kernel replaces another only for a gain beyond the noise: its interval must lie below
    the other's. Results of another binding of the sizes are not comparable: the newer run
    decides then. Part of the transaction that records the result.
    """
    device = result.environment
    serving = (
        Selection.objects.select_for_update(of=("self",))
        .select_related("result")
        .filter(
            problem=result.problem,
            target=device.target,
            device_name=device.device_name,
            until__isnull=True,
        )
        .first()
    )
    if serving is not None and not _better(result, serving):
        return serving
    now = timezone.now()
    if serving is not None:
        serving.until = now
        serving.save(update_fields=["until"])
    return Selection.objects.create(
        problem=result.problem,
        target=device.target,
        device_name=device.device_name,
        kernel=result.kernel,
        result=result,
        reason=f"fastest in {run_name}"[:300],
        since=now,
    )


def _better(result: BenchmarkResult, serving: Selection) -> bool:
    known = serving.result
    if serving.kernel_id == result.kernel_id:
        return False
    if known is None or known.bindings != result.bindings:
        return True
    return result.high_ns < known.low_ns
