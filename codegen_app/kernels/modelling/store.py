"""Storing the model's report of a build on a board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Now

from codegen_app.kernels.models import Build, KernelUse, Modelling
from codegen_app.platform import artifacts
from codegen_app.workers.models import State
from scheduler.cycles import report_json
from scheduler.cycles.report import VERSION, Report


def time_fields(report: Report) -> dict[str, Any]:
    """Return the columns of any kernel with a report; the report's file is stored."""
    return {
        "report": artifacts.store(report_json.write(report), ".json"),
        "low_us": report.time_us.low,
        "time_us": report.time_us.mid,
        "high_us": report.time_us.high,
        "sentence": report.sentence,
    }


def report_fields(report: Report, build: Build) -> dict[str, Any]:
    """Return the columns of a finished modelling; the report's file is stored."""
    return {
        **time_fields(report),
        "code_digest": build.code_digest,
        "unknown": dict(report.unknown),
    }


def store_report(
    build: Build,
    board: str,
    sizes: Mapping[str, int],
    report: Report,
    use: KernelUse | None = None,
) -> Modelling:
    """Store the report of a build that was modelled already, replacing an earlier row of the same.

    ``sizes`` are those of the modelled problem's symbols.
    """
    row, _ = Modelling.objects.update_or_create(
        build=build,
        board=board,
        sizes=dict(sizes),
        version=VERSION,
        defaults={
            **report_fields(report, build),
            "use": use,
            "state": State.DONE,
            "claim": "",
            "lease_until": None,
            "stage": "",
            "reason": "",
            "detail": "",
            "finished_at": Now(),
        },
    )
    return row
