"""Periodic jobs: requeueing the work of dead workers, announcing waiting work, cleaning up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models.functions import Now

from codegen_app.accounts import audit, idempotency
from codegen_app.kernels.modelling import build_events
from codegen_app.kernels.services import builds, instructions
from codegen_app.remote.models import RemoteLease
from codegen_app.site import queued_work, retention
from codegen_app.tracking.alerting import (
    commits,
    missing_data,
    recovered,
    series_findings,
    shared_series,
)
from codegen_app.tracking.services import alert_pipeline
from codegen_app.tuning.services import ledger, schedules
from codegen_app.workers import work
from codegen_app.workers.models import Control, Worker

_KEEP_SILENT_WORKERS = timedelta(days=1)
_KEEP_ENDED_LEASES = timedelta(days=30)
log = logging.getLogger(__name__)


def run_maintenance() -> None:
    """Run one round; safe to run from any number of workers at once.

    A step that fails by its own fault (a traceback in the log) does not stop the others; without
    the database the round ends with its error.
    """
    for step in _STEPS:
        try:
            step()
        except (InterfaceError, OperationalError):
            raise
        except Exception:
            log.exception("a step of the round failed: %s", step.__name__)


def requeue_expired() -> None:
    """Give the rows of silent workers to others."""
    if count := work.requeue_expired():
        log.warning("%d rows were given on: their workers went silent", count)


def replace_orphaned_builds() -> None:
    """Request builds again whose compiler is gone."""
    if count := builds.replace_orphaned():
        log.warning("%d builds were requested again: their compiler is gone", count)


@transaction.atomic
def announce() -> None:
    """Wake workers for all waiting work."""
    queued_work.notify_workers()
    alert_pipeline.announce()


def check_missing_data() -> None:
    """Raise alerts of series whose points stopped coming, and close those whose points came."""
    if count := missing_data.update_alerts():
        log.info("missing data: %d series looked at", count)


def read_commits() -> None:
    """Read the commits of new alerts from Git mirrors."""
    if count := commits.read_waiting():
        log.info("commits: of %d alerts", count)


def close_recovered_alerts() -> None:
    """Close alerts that have been back at the previous level for days."""
    if count := recovered.close_alerts():
        log.info("recovered: %d alerts closed", count)


def examine_series() -> None:
    """Look for drifts, changes of spread and second modes in series with enough new points."""
    if count := series_findings.examine_due():
        log.info("drift, spread and modes: %d series examined", count)


def check_shared_series() -> None:
    """Raise alerts of hosts that changed in series that several hosts measure in turn."""
    if count := shared_series.check_shared_series():
        log.info("shared series: %d machines changed", count)


_STEPS: tuple[Callable[[], object], ...] = (
    requeue_expired,
    ledger.reconcile,
    build_events.reconcile,
    replace_orphaned_builds,
    schedules.run_due,
    audit.delete_old,
    idempotency.delete_old,
    instructions.count_some,
    announce,
)


def clean_up_host() -> None:
    """Remove what this host can generate again."""
    _log(retention.sweep_host())


def clean_up() -> None:
    """Delete what is no longer needed: workers that are gone, expired sessions, artifacts that no
    row needs, and expired runs and builds."""
    silent = Worker.objects.filter(seen_at__lt=Now() - _KEEP_SILENT_WORKERS, pinned_to="")
    RemoteLease.objects.filter(ended_at__lt=Now() - _KEEP_ENDED_LEASES).delete()
    silent.filter(control=Control.GO).delete()  # otherwise its control would be lost
    _log(retention.sweep())
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()


def _log(removed: dict[str, int]) -> None:
    if words := ", ".join(f"{count} {what}" for what, count in removed.items() if count):
        log.info("removed: %s", words)
