"""Deletion of what is no longer needed: periodically, in small batches.

Files that can be generated again (the code cache, fetched copies) are each host's own. An artifact
is deleted with its row, under the row's lock and a day after its last use: whoever stores the same
content meanwhile waits, and writes it again (``artifacts.store``).
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
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
    return {
        "entries of the code cache": cache.shrink(settings.CODE_CACHE_MAX_BYTES, dry_run=dry_run),
        "fetched copies": _sweep_fetched(dry_run),
    }


def sweep(*, dry_run: bool = False, at_most: int = _AT_ONCE) -> dict[str, int]:
    """Delete rows and artifacts that nothing needs, at most ``at_most`` of a kind; return counts by
    kind."""
    return {
        "runs": _sweep_runs(dry_run, at_most),
        "builds": _sweep_builds(dry_run, at_most),
        "packed bundles": _sweep_packings(dry_run, at_most),
        "modelled reports": _sweep_modellings(dry_run, at_most),
        "kernels of others": _sweep_external_kernels(dry_run, at_most),
        "files without a row": _sweep_files(dry_run, at_most),
        "artifacts": _sweep_artifacts(dry_run, at_most),
        "unfinished uploads": _sweep_uploads(dry_run, at_most),
    }


def _sweep_fetched(dry_run: bool) -> int:
    removed = 0
    for file in artifacts.fetched_folder().rglob("*"):
        try:
            old = file.is_file() and file.stat().st_mtime < time.time() - UNUSED_AGE.total_seconds()
            if old and not dry_run:
                file.unlink()
                if file.parent != artifacts.fetched_folder():
                    file.parent.rmdir()
        except OSError:  # another worker was faster, or uses the folder
            continue
        removed += old
    return removed


def _sweep_runs(dry_run: bool, at_most: int) -> int:
    """Delete runs that ended long ago, with their results that are not selected."""
    if not settings.KEEP_RUNS_DAYS:
        return 0
    oldest = timezone.now() - timedelta(days=settings.KEEP_RUNS_DAYS)
    # An imported run counts from its import: it ended long before.
    old = TuningRun.objects.exclude(state__in=OPEN_STATES).filter(
        Q(imported=None) | Q(imported__imported_at__lt=oldest), finished_at__lt=oldest
    )
    keys = list(old.order_by("pk").values_list("pk", flat=True)[:at_most])
    if not dry_run:
        for key in keys:
            _delete_run(key)
    return len(keys)


@transaction.atomic
def _delete_run(key: int) -> None:
    results = list(
        BenchmarkResult.objects.filter(
            ~Exists(Selection.objects.filter(result=OuterRef("pk"))),
            Q(task__run=key) | Q(candidate__task__run=key),
        ).values_list("pk", flat=True)
    )
    TuningRun.objects.filter(pk=key).delete()
    BenchmarkResult.objects.filter(pk__in=results).delete()


def _sweep_builds(dry_run: bool, at_most: int) -> int:
    """Delete builds that ended long ago and that no graph, run or result needs."""
    if not settings.KEEP_BUILDS_DAYS:
        return 0
    oldest = timezone.now() - timedelta(days=settings.KEEP_BUILDS_DAYS)
    needed = (
        KernelUse.objects.filter(kernel=OuterRef("kernel"), is_default=True),
        Candidate.objects.filter(build=OuterRef("pk")),
        BenchmarkResult.objects.filter(build=OuterRef("pk")),
        Selection.objects.filter(kernel=OuterRef("kernel")),
    )
    old = Build.objects.filter(
        *(~Exists(rows) for rows in needed),
        state__in=set(State) - set(OPEN_STATES),
        finished_at__lt=oldest,
    )
    keys = list(old.order_by("pk").values_list("pk", flat=True)[:at_most])
    if not dry_run:
        Build.objects.filter(pk__in=keys).delete()
    return len(keys)


def _sweep_packings(dry_run: bool, at_most: int) -> int:
    """Delete packings after the time for their download; their files go as artifacts do."""
    oldest = timezone.now() - timedelta(days=settings.KEEP_BUNDLES_DAYS)
    old = Packing.objects.exclude(state__in=OPEN_STATES).filter(finished_at__lt=oldest)
    keys = list(old.order_by("pk").values_list("pk", flat=True)[:at_most])
    if not dry_run:
        Packing.objects.filter(pk__in=keys).exclude(state__in=OPEN_STATES).delete()
    return len(keys)


def _sweep_modellings(dry_run: bool, at_most: int) -> int:
    """Delete results of earlier versions of the model, which are no longer shown; their files go as
    artifacts do. Everything else is deleted with its build."""
    old = Modelling.objects.exclude(version=VERSION)
    keys = list(old.order_by("pk").values_list("pk", flat=True)[:at_most])
    if not dry_run:
        Modelling.objects.filter(pk__in=keys).delete()
    return len(keys)


def _sweep_external_kernels(dry_run: bool, at_most: int) -> int:
    """Delete external kernels that ended long ago; their files go as artifacts do."""
    oldest = timezone.now() - timedelta(days=settings.KEEP_FOREIGN_KERNELS_DAYS)
    old = ForeignKernel.objects.exclude(state__in=OPEN_STATES).filter(finished_at__lt=oldest)
    keys = list(old.order_by("pk").values_list("pk", flat=True)[:at_most])
    if not dry_run:
        ForeignKernel.objects.filter(pk__in=keys).exclude(state__in=OPEN_STATES).delete()
    return len(keys)


def _unused_artifacts(before: datetime) -> QuerySet[Artifact]:
    of_builds = Build.objects.filter(
        Q(listing=OuterRef("pk"))
        | Q(code_object=OuterRef("pk"))
        | Q(intermediate=OuterRef("pk"))
        | Q(library=OuterRef("pk"))
    )
    of_graphs = Graph.objects.filter(file=OuterRef("pk"))
    of_packings = Packing.objects.filter(file=OuterRef("pk"))
    of_modellings = Modelling.objects.filter(report=OuterRef("pk"))
    of_foreign_kernels = ForeignKernel.objects.filter(
        Q(file=OuterRef("pk")) | Q(listing=OuterRef("pk")) | Q(report=OuterRef("pk"))
    )
    needed = (of_builds, of_graphs, of_packings, of_modellings, of_foreign_kernels)
    return Artifact.objects.filter(*(~Exists(rows) for rows in needed), used_at__lt=before)


def _sweep_artifacts(dry_run: bool, at_most: int) -> int:
    unneeded = _unused_artifacts(timezone.now() - UNUSED_AGE)
    keys = list(unneeded.order_by("pk").values_list("pk", flat=True)[:at_most])
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
    for folder in _folders("sha256"):
        paths = [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]
        known = set(Artifact.objects.filter(path__in=paths).values_list("path", flat=True))
        for path in sorted(set(paths) - known):
            if removed >= at_most:
                return removed
            if _is_old(path):
                removed += 1
                if not dry_run:
                    _adopt(path)
    return removed


def _sweep_uploads(dry_run: bool, at_most: int) -> int:
    """Delete multipart uploads of killed processes; only a bucket has such uploads."""
    unfinished = getattr(default_storage, "unfinished", None)
    found = unfinished(timezone.now() - UNUSED_AGE)[:at_most] if unfinished else []
    if not dry_run:
        for key, upload in found:
            default_storage.abort(key, upload)  # type: ignore[attr-defined]
    return len(found)


def _adopt(path: str) -> None:
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


def _folders(root: str) -> list[str]:
    try:
        return [f"{root}/{name}" for name in sorted(default_storage.listdir(root)[0])]
    except FileNotFoundError:  # nothing was stored yet
        return []


def _is_old(path: str) -> bool:
    try:
        return default_storage.get_modified_time(path) < timezone.now() - UNUSED_AGE
    except FileNotFoundError:
        return False
