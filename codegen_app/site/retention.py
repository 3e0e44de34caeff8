"""Deletion of what is no longer needed: periodically, in small batches.

Files that can be generated again (the code cache, fetched copies) are each host's own. An artifact
is deleted with its row, under the row's lock and a day after its last use: whoever stores the same
content meanwhile waits, and writes it again (``artifacts.store``).
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, ForeignKernel, KernelUse, Modelling, Packing
from codegen_app.platform import artifacts
from codegen_app.platform.models import Artifact
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun
from codegen_app.workers import compilers
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.cycles.report import VERSION
from scheduler.files import PARTIAL_SUFFIX

UNUSED_AGE = timedelta(days=1)
_AT_ONCE = 500  # rows of a kind per round
_DIGEST = re.compile(r"[0-9a-f]{64}")


def sweep_host(*, dry_run: bool = False) -> dict[str, int]:
    """Remove what this host can generate again; return the number removed by kind."""
    cache = compilers.code_cache()
    if not dry_run:
        cache.sweep()
    fetched = 0
    for file in artifacts.fetched_folder().rglob("*"):
        try:
            old = file.is_file() and file.stat().st_mtime < time.time() - UNUSED_AGE.total_seconds()
            if old and not dry_run:
                file.unlink()
                if file.parent != artifacts.fetched_folder():
                    file.parent.rmdir()
        except OSError:  # another worker was faster, or uses the folder
            continue
        fetched += old
    return {
        "entries of the code cache": cache.shrink(settings.CODE_CACHE_MAX_BYTES, dry_run=dry_run),
        "fetched copies": fetched,
    }


def sweep(*, dry_run: bool = False, at_most: int = _AT_ONCE) -> dict[str, int]:
    """Delete rows and artifacts that nothing needs, at most ``at_most`` of a kind; return counts by
    kind. The files of deleted rows are deleted as artifacts."""
    packings = _ended(Packing, settings.KEEP_BUNDLES_DAYS)
    # Results of earlier versions of the model are no longer shown; others go with their builds.
    modellings = Modelling.objects.exclude(version=VERSION)
    external_kernels = _ended(ForeignKernel, settings.KEEP_FOREIGN_KERNELS_DAYS)
    return {
        "runs": _sweep_runs(dry_run, at_most),
        "builds": _delete(_unneeded_builds(), dry_run, at_most),
        "packed bundles": _delete(packings, dry_run, at_most),
        "modelled reports": _delete(modellings, dry_run, at_most),
        "kernels of others": _delete(external_kernels, dry_run, at_most),
        "files without a row": _sweep_files(dry_run, at_most),
        "artifacts": sweep_artifacts(dry_run, at_most),
        "unfinished uploads": _sweep_uploads(dry_run, at_most),
    }


def _ended(model: type[Model], days: int) -> QuerySet[Any]:
    """Return the rows that ended more than ``days`` ago."""
    oldest = timezone.now() - timedelta(days=days)
    rows = model._default_manager.exclude(state__in=OPEN_STATES)
    return rows.filter(finished_at__lt=oldest)


def _first_keys(rows: QuerySet[Any], at_most: int) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True)[:at_most])


def _delete(rows: QuerySet[Any], dry_run: bool, at_most: int) -> int:
    keys = _first_keys(rows, at_most)
    if not dry_run:
        rows.filter(pk__in=keys).delete()
    return len(keys)


def _sweep_runs(dry_run: bool, at_most: int) -> int:
    """Delete runs that ended long ago, with their results that are not selected."""
    if not settings.KEEP_RUNS_DAYS:
        return 0
    # An imported run counts from its import: it ended long before.
    oldest = timezone.now() - timedelta(days=settings.KEEP_RUNS_DAYS)
    old = _ended(TuningRun, settings.KEEP_RUNS_DAYS).filter(
        Q(imported=None) | Q(imported__imported_at__lt=oldest)
    )
    keys = _first_keys(old, at_most)
    for key in () if dry_run else keys:
        with transaction.atomic():
            results = list(
                BenchmarkResult.objects.filter(
                    ~Exists(Selection.objects.filter(result=OuterRef("pk"))),
                    Q(task__run=key) | Q(candidate__task__run=key),
                ).values_list("pk", flat=True)
            )
            TuningRun.objects.filter(pk=key).delete()
            BenchmarkResult.objects.filter(pk__in=results).delete()
    return len(keys)


def _unneeded_builds() -> QuerySet[Build]:
    """Return builds that ended long ago and that no graph, run or result needs."""
    if not settings.KEEP_BUILDS_DAYS:
        return Build.objects.none()
    needed = (
        KernelUse.objects.filter(kernel=OuterRef("kernel"), is_default=True),
        Candidate.objects.filter(build=OuterRef("pk")),
        BenchmarkResult.objects.filter(build=OuterRef("pk")),
        Selection.objects.filter(kernel=OuterRef("kernel")),
    )
    return Build.objects.filter(
        *(~Exists(rows) for rows in needed),
        state__in=set(State) - set(OPEN_STATES),
        finished_at__lt=timezone.now() - timedelta(days=settings.KEEP_BUILDS_DAYS),
    )


def _unused_artifacts(before: datetime) -> QuerySet[Artifact]:
    fields = {
        Build: ("listing", "code_object", "intermediate", "library"),
        Graph: ("file",),
        Packing: ("file",),
        Modelling: ("report",),
        ForeignKernel: ("file", "listing", "report"),
    }
    needed = (
        model._default_manager.filter(reduce(or_, (Q(**{name: OuterRef("pk")}) for name in names)))
        for model, names in fields.items()
    )
    return Artifact.objects.filter(*(~Exists(rows) for rows in needed), used_at__lt=before)


def sweep_artifacts(dry_run: bool, at_most: int) -> int:
    """Delete artifacts that no row needs, each a day after its last use."""
    keys = _first_keys(_unused_artifacts(timezone.now() - UNUSED_AGE), at_most)
    return len(keys) if dry_run else sum(_drop(key) for key in keys)


@transaction.atomic
def _drop(key: int) -> bool:
    """Delete the row and then its file, under the row's lock; return False if it is needed after
    all."""
    row = Artifact.objects.select_for_update().filter(pk=key).first()
    if row is None or not _unused_artifacts(timezone.now() - UNUSED_AGE).filter(pk=key).exists():
        return False
    row.delete()
    default_storage.delete(row.path)
    return True


def _sweep_files(dry_run: bool, at_most: int) -> int:
    """Delete old files of the storage without a row: each gets a row, so that it is deleted like
    others, and a concurrent store of its content is waited for."""
    removed = 0
    try:
        folders = sorted(default_storage.listdir("sha256")[0])
    except FileNotFoundError:  # nothing was stored yet
        return 0
    for folder in folders:
        names = default_storage.listdir(f"sha256/{folder}")[1]
        paths = [f"sha256/{folder}/{name}" for name in names]
        recorded = set(Artifact.objects.filter(path__in=paths).values_list("path", flat=True))
        for path in sorted(set(paths) - recorded):
            if removed >= at_most:
                return removed
            try:
                is_old = default_storage.get_modified_time(path) < timezone.now() - UNUSED_AGE
            except FileNotFoundError:
                continue
            removed += is_old
            if is_old and not dry_run:
                _delete_unknown(path)
    return removed


def _delete_unknown(path: str) -> None:
    name = PurePosixPath(path).name
    digest = _DIGEST.match(name)
    if digest is None or name.endswith(PARTIAL_SUFFIX):
        default_storage.delete(path)  # unfinished: left by a killed process
        return
    long_ago = datetime(1970, 1, 1, tzinfo=UTC)
    row, _ = Artifact.objects.get_or_create(
        digest=digest[0], defaults={"size_bytes": 0, "path": path, "used_at": long_ago}
    )
    if row.path != path:
        default_storage.delete(path)  # the same content, stored under another name
        return
    _drop(row.pk)


def _sweep_uploads(dry_run: bool, at_most: int) -> int:
    """Delete multipart uploads of killed processes; only a bucket has such uploads."""
    unfinished = getattr(default_storage, "unfinished", None)
    uploads = unfinished(timezone.now() - UNUSED_AGE)[:at_most] if unfinished else []
    for key, upload in () if dry_run else uploads:
        default_storage.abort(key, upload)  # type: ignore[attr-defined]
    return len(uploads)
