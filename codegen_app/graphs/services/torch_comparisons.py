"""Comparing an imported graph with torch, by workers that have torch.

torch's reader unpickles the file's content: it runs only where every part of the sandbox is in
force. Its output is checked like the file.
"""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.platform import artifacts, sanitize
from codegen_app.workers import compilers, queue, work
from codegen_app.workers.models import State
from scheduler import sandbox, untrusted
from scheduler.errors import MachineError, Stage, UserError
from scheduler.sandbox.process import Cancellation, Cancelled

_NAME, _DETAIL = 1000, 500  # characters
_FAILED = (State.REJECTED, State.CANCELLED, State.QUARANTINED)


def queued_comparisons() -> QuerySet[TorchComparison]:
    """Return the comparisons that this process can do: all if torch is installed, else none."""
    return (
        TorchComparison.objects.all()
        if compilers.torch_version()
        else TorchComparison.objects.none()
    )


def request(graph: Graph) -> None:
    """Request a prepared graph's comparison, in the caller's transaction; again if it failed or
    waits after a failure. Does nothing if the site disables comparisons."""
    if not settings.COMPARE_WITH_TORCH:
        return
    row, is_new = TorchComparison.objects.get_or_create(graph=graph)
    same = TorchComparison.objects.filter(pk=row.pk)
    failed = same.filter(state__in=_FAILED)
    paused = same.filter(state=State.QUEUED, again_at__isnull=False)
    if is_new or failed.update(**work.REQUEUED_FIELDS) or paused.update(again_at=None):
        queue.notify(queue.Kind.PREPARE)  # its workers compare


def run(row: TorchComparison) -> None:
    """Run a claimed comparison; one that cannot be done is rejected with one line.

    Raises ``work.LeaseLostError`` if it was cancelled, given to another worker, or deleted with its
    graph.
    """
    cancellation = Cancellation()
    with work.heartbeat(row, cancellation.cancel):
        try:
            sandbox.require()
            fields = _compare(row.graph, cancellation)
        except Cancelled:
            raise work.LeaseLostError(
                f"{row} was cancelled or taken over by another worker"
            ) from None
        except MachineError:
            raise
        except UserError as error:
            work.finish(row, State.REJECTED, stage=Stage.RUN, reason=str(error))
            return
        work.finish(row, State.DONE, **fields)


def _compare(graph: Graph, cancellation: Cancellation) -> dict[str, Any]:
    """Return the row's fields, at the hints of the graph's symbols. The answer is checked, since
    its process has run the file's content."""
    hints = {name: symbol["hint"] for name, symbol in graph.symbols.items()}
    answer = untrusted.compare_with_torch(
        artifacts.local_file(graph.file, ".pt2"),
        hints,
        untrusted.Limits(settings.PREPARE_MAX_S, settings.IMPORT_MAX_MEMORY_BYTES),
        cancellation,
        graph.name,
    )
    oracle = f"torch {compilers.torch_version().partition('+')[0]}"
    try:
        # An input that torch writes and the graph does not also has a finding.
        if len(answer) > max(1, len(graph.outputs) + len(graph.inputs)):
            raise ValueError
        # Data-dependent sizes are those of the inputs.
        sizes = answer[0]["bindings"] if answer else hints
        bindings = {name: sizes[name] for name in hints}
        if any(type(size) is not int for size in bindings.values()):
            raise TypeError
        findings = []
        for finding in answer:
            passed = finding["passed"]
            if not (passed is None or isinstance(passed, bool)):
                raise TypeError
            numbers = {name: finding[name] for name in ("max_error", "bound", "ratio")}
            findings.append(
                {
                    "output": sanitize.storable_text(finding["output"], _NAME),
                    "passed": passed,
                    # JSON cannot represent an infinity or a NaN.
                    **{name: float(x) if math.isfinite(x) else None for name, x in numbers.items()},
                    "detail": sanitize.storable_text(finding["detail"], _DETAIL),
                }
            )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UserError(f"{oracle}: the answer is not a list of findings") from None
    return {"oracle": oracle, "bindings": bindings, "findings": findings}
