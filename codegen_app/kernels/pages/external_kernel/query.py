"""The pages of external kernels: the list, and one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.urls import reverse

from codegen_app.kernels.modelled.rows import read_report
from codegen_app.kernels.modelled.view import ModelledView, modelled_view
from codegen_app.kernels.models import ForeignKernel
from codegen_app.kernels.queries.listing import ListingView, read_listing
from codegen_app.platform import files
from codegen_app.web.row import build_row
from codegen_app.workers.models import OPEN_STATES, State
from scheduler import targets
from scheduler.cycles.report import Report
from scheduler.errors import MachineError, UserError

MAX_KERNELS = 50
MAX_LINES = 20_000  # the longest listing that a page shows


@dataclass(frozen=True)
class ExternalKernelRow:
    """A kernel in the list; times in microseconds, None until known."""

    id: int
    name: str
    target: str
    board: str
    state: str
    function: str
    low_us: float | None
    time_us: float | None
    high_us: float | None
    sentence: str
    created_at: datetime
    url: str


@dataclass(frozen=True)
class ExternalKernelsPage:
    """Files that end with one of ``accepts``, of at most ``limit_bytes``; the newest external
    kernels, each kept for ``kept_days``."""

    accepts: tuple[str, ...]
    limit_bytes: int
    kept_days: int
    kernels: tuple[ExternalKernelRow, ...]


@dataclass(frozen=True)
class ExternalKernelPage:
    """One kernel; ``modelled`` and ``listing`` are set once it is done, the listing only if it is
    short enough for a page. ``missing``: one of its files is missing from the storage."""

    row: ExternalKernelRow
    is_open: bool
    phase: str
    stage: str
    reason: str
    launch: str
    requested_by: int | None
    modelled: ModelledView | None
    listing: ListingView | None
    listing_lines: int
    listing_url: str
    report_url: str
    missing: bool


def external_kernels_page() -> ExternalKernelsPage:
    """Return the accepted files and the kernels, the newest first (1 query)."""
    return ExternalKernelsPage(
        accepts=(".hsaco", ".co", ".s", ".amdgcn"),
        limit_bytes=settings.FOREIGN_KERNEL_MAX_BYTES,
        kept_days=settings.KEEP_FOREIGN_KERNELS_DAYS,
        kernels=tuple(map(_row, ForeignKernel.objects.defer("launch")[:MAX_KERNELS])),
    )


def external_kernel_page(key: int, launch: int = 0, at: int | None = None) -> ExternalKernelPage:
    """Return a kernel, its timeline from cycle ``at`` (1 query)."""
    row = ForeignKernel.objects.select_related("listing", "report").get(pk=key)
    text, report = _files(row)
    lines = text.count("\n") + 1 if text else 0
    listing = None
    if text and lines <= MAX_LINES:
        listing = read_listing(text, targets.find(row.target))
    is_done = row.state == State.DONE
    return ExternalKernelPage(
        row=_row(row),
        is_open=row.state in OPEN_STATES,
        phase=row.phase,
        stage=row.stage,
        reason=row.reason,
        launch=row.launch,
        requested_by=row.requested_by_id,
        modelled=modelled_view(report, listing, launch, at) if report else None,
        listing=listing,
        listing_lines=lines,
        listing_url=reverse("foreign_listing", args=[row.pk]) if text else "",
        report_url=reverse("foreign_report", args=[row.pk]) if report else "",
        missing=is_done and (report is None or not text),
    )


def result_files(key: int) -> tuple[str, Report | None]:
    """Return the listing's text and the report (1 query); "" and None if there are none."""
    row = ForeignKernel.objects.select_related("listing", "report").filter(pk=key).first()
    return _files(row) if row else ("", None)


def _files(row: ForeignKernel) -> tuple[str, Report | None]:
    if row.state != State.DONE or row.listing is None or row.report is None:
        return "", None
    try:
        text = files.read(row.listing.path, row.listing.digest).decode("utf-8", "replace")
        return text, read_report(row.report.path, row.report.digest)
    except MachineError:  # unavailable, not missing
        raise
    except (FileNotFoundError, UserError):
        return "", None


def _row(row: ForeignKernel) -> ExternalKernelRow:
    return build_row(ExternalKernelRow, row, url=row.get_absolute_url())
