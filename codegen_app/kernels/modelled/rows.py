"""Lists of modellings: the boards and sizes of a kernel, and its modelled times."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db.models import F, QuerySet
from django.urls import reverse

from codegen_app.kernels.models import Modelling
from codegen_app.platform import files
from codegen_app.web.row import build_row
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.cycles import report_json
from scheduler.cycles.report import VERSION, Report
from scheduler.errors import MachineError, UserError


@dataclass(frozen=True)
class ModelledRow:
    """One modelling. Times in microseconds, None until known; ``is_stale`` means that the build's
    code has changed since."""

    id: int
    build: int
    target: str
    board: str
    sizes: Mapping[str, int]
    state: str
    stage: str
    reason: str
    is_open: bool
    is_stale: bool
    low_us: float | None
    time_us: float | None
    high_us: float | None
    sentence: str
    unknown: Mapping[str, int]
    url: str
    report_url: str
    finished_at: datetime | None

    @property
    def is_shown(self) -> bool:
        """Whether there is a report for the build's current code."""
        return self.state == State.DONE and not self.is_stale


def modelled_rows(kernel: int) -> tuple[ModelledRow, ...]:
    """Return finished and requested modellings of a kernel, by target and board (1 query)."""
    rows = _current().filter(build__kernel=kernel)
    return tuple(
        map(_row, rows.order_by("build__target", "board", "-finished_at", "-pk")[:_MAX_ROWS])
    )


def modelled_rows_of_builds(builds: Collection[int]) -> tuple[ModelledRow, ...]:
    """Return the modellings of these builds, the newest first (1 query)."""
    rows = _current().filter(build__in=builds, state=State.DONE)
    modelled = map(_row, rows.order_by("-finished_at", "-pk"))
    return tuple(row for row in modelled if row.is_shown)


def load_report(row: int, build: int | None = None) -> Report | None:
    """Return the report of a row, if it belongs to that build (1 query); None if there is none or
    its file is missing."""
    rows = Modelling.objects.filter(pk=row, version=VERSION, state=State.DONE)
    if build is not None:
        rows = rows.filter(build=build, code_digest=F("build__code_digest"))
    modelling = rows.select_related("report").first()
    if modelling is None or modelling.report is None:
        return None
    try:
        return read_report(modelling.report.path, modelling.report.digest)
    except MachineError:  # unavailable, not missing
        raise
    except (FileNotFoundError, UserError):
        return None


# Files are addressed by the digest of their content, so a parsed result stays valid.
@lru_cache(maxsize=16)
def read_report(path: str, digest: str) -> Report:
    """Return a stored report. Raises ``FileNotFoundError`` and ``UserError``."""
    return report_json.read(files.read(path, digest))


_MAX_ROWS = 200


def _current() -> QuerySet[Modelling]:
    return (
        Modelling.objects.filter(version=VERSION)
        .select_related("build__kernel")
        .defer("build__kernel__source", "build__log")
    )


def _row(row: Modelling) -> ModelledRow:
    is_done = row.state == State.DONE
    return build_row(
        ModelledRow,
        row,
        id=row.pk,
        build=row.build_id,
        target=row.build.target,
        is_open=row.state in OPEN_STATES,
        is_stale=is_done and row.code_digest != row.build.code_digest,
        low_us=row.low_us if is_done else None,
        time_us=row.time_us if is_done else None,
        high_us=row.high_us if is_done else None,
        sentence=row.sentence if is_done else "",
        unknown=row.unknown if is_done else {},
        url=f"{row.build.kernel.get_absolute_url()}?model={row.pk}",
        report_url=reverse("modelled_report", args=[row.pk]) if is_done else "",
    )
