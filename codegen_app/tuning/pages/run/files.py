"""Files that a run's page offers."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.queries import ledger


def run_ledger(_: HttpRequest, pk: int) -> HttpResponse:
    """The outcome of every candidate, as JSON lines."""
    run = get_object_or_404(TuningRun.objects.select_related("graph"), pk=pk)
    lines = "".join(f"{json.dumps(line, default=str)}\n" for line in ledger.run_ledger(run))
    return _file(lines, "application/jsonl", f"run-{pk}.ledger.jsonl")


def run_log(_: HttpRequest, pk: int) -> HttpResponse:
    """The run's AUTOTUNE log, as in Inductor."""
    run = get_object_or_404(TuningRun, pk=pk)
    return _file(ledger.run_log(run), "text/plain", f"run-{pk}.autotune.log")


def _file(text: str, kind: str, name: str) -> HttpResponse:
    answer = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
