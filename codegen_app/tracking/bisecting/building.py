"""A worker's part of a bisection: check out, build and measure a revision by the command that the
site configures for its repository (``KILN_BISECT``), in the sandbox."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from codegen_app.platform.config.bisect_commands import BisectCommand
from codegen_app.tracking.alerting.commits import is_revision_name
from codegen_app.tracking.bisecting import walk
from codegen_app.tracking.models import Batch, Bisection, BisectionStep, Revision, Source
from codegen_app.tracking.remeasuring import requests
from codegen_app.tracking.services import point_storage
from codegen_app.tuning.services.devices import reserve_device
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler.errors import MachineError, Stage, UserError
from scheduler.results.points import importer
from scheduler.results.points.model import ImportContext, Point, RevisionKey
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import SYSTEM_FILES, SYSTEM_LIBRARIES
from scheduler.sandbox.process import (
    GIB,
    Cancellation,
    Cancelled,
    CompletedProcess,
    Limits,
    OutputTail,
)
from scheduler.sandbox.process import run as run_process
from scheduler.text import escape_log, one_line

RESULTS = "results.json"
LOG_BYTES = 64 << 10
_FILE_BYTES = 8 * GIB
_STOPPED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def queued_steps() -> QuerySet[BisectionStep]:
    """Return the steps whose repository this host can build."""
    repositories = settings.BISECT_COMMANDS.keys()
    return BisectionStep.objects.filter(request__revision__repository__in=repositories)


def run(row: BisectionStep) -> None:
    """Build and measure the revision of a claimed step; its points answer the request. A revision
    that cannot be measured is skipped, with the reason. Raises ``work.LeaseLostError`` when the
    claim is lost, as when the bisection is cancelled."""
    revision = row.request.revision
    command = settings.BISECT_COMMANDS[revision.repository]
    cancellation, output = Cancellation(), OutputTail(LOG_BYTES)

    def log() -> dict[str, str]:
        return {"detail": escape_log(output.text)}

    with (
        work.heartbeat(row, cancellation.cancel, log) as lease_lost,
        reserve_device(command.device, lease_lost),
        _empty_folder(row) as folder,
    ):
        try:
            process = _run_command(command, revision, folder, output, cancellation)
            points = _points(row, _results(process, folder))
        except Cancelled:
            raise work.LeaseLostError(
                f"{row} was cancelled or taken over by another worker"
            ) from None
        except MachineError:
            raise
        except UserError as error:
            _reject(row, str(error), log())
            return
    _record(row, points, log())


def _run_command(
    command: BisectCommand,
    revision: Revision,
    folder: Path,
    output: OutputTail,
    cancellation: Cancellation,
) -> CompletedProcess:
    """Run the command in an empty folder. It gets no variable of Kiln's own environment."""
    if not os.access(command.command[0], os.X_OK):
        raise MachineError(f"KILN_BISECT: {command.command[0]} cannot be executed")
    if not is_revision_name(revision.name):
        raise UserError(f"{revision.name!r} is not the name of a commit, branch or tag")
    checkout, home, temporary = (folder / name for name in ("checkout", "home", "tmp"))
    for path in (checkout, home, temporary):
        path.mkdir()
    policy = Sandbox(
        read=(*command.read, *SYSTEM_FILES, Path("/etc/ld.so.cache"), Path("/etc/alternatives")),
        write=(folder, *command.write),
        execute=(folder, *command.execute, Path(command.command[0]), *SYSTEM_LIBRARIES),
        devices=command.devices,
        packet_sockets=bool(command.devices),
        network=command.network,
        one_group=True,
    )
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",  # Git fails if it may not read that
        **command.environment,
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "KILN_REVISION": revision.name,
        "KILN_RESULTS": str(folder / RESULTS),
    }
    limits = Limits(command.minutes * 60, command.memory_gib * GIB, _FILE_BYTES, LOG_BYTES)
    arguments = (*command.command, revision.name)
    return run_process(arguments, checkout, environment, limits, cancellation, policy, output)


def _results(process: CompletedProcess, folder: Path) -> bytes:
    """Return the file of results. Raises ``UserError`` if the command failed or left none."""
    if -process.returncode in _STOPPED or process.returncode - 128 in _STOPPED:
        raise MachineError(f"the command was ended from outside ({process.returncode})")
    if not process.ok:
        lines = [line for line in process.output.splitlines() if line.strip()]
        last_line = f": {one_line(lines[-1])[:300]}" if lines else ""
        failure = process.failure or f"exit status {process.returncode}"
        raise UserError(f"the command failed, {failure}{last_line}")
    limit = settings.API_BODY_MAX_BYTES
    try:
        with open(folder / RESULTS, "rb", opener=_open_safely) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError("results: not a regular file")
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise UserError("the command wrote no results to the file $KILN_RESULTS") from None
    except OSError as error:
        raise UserError(f"results: {error.strerror}") from None
    if len(data) > limit:
        raise UserError(f"results: more than {limit:,} bytes (KILN_API_BODY_MAX_BYTES)")
    return data


def _open_safely(path: str, flags: int) -> int:
    """Open what a command may have left: no link to another file, and no pipe that blocks."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _points(row: BisectionStep, data: bytes) -> list[Point]:
    """Return the points of the bisected series: others that a commit reports are not trusted to be
    measurements. Raises ``UserError`` without any, or for those of another revision."""
    series, revision = row.bisection.series, row.request.revision
    key = RevisionKey(revision.name, revision.at, revision.branch, revision.repository)
    context = ImportContext(
        now=timezone.now(),
        device=series.device_name,
        target=series.target,
        toolchain=series.toolchain,
        revision=revision.name,
        revision_at=revision.at,
        branch=revision.branch,
        repository=revision.repository,
    )
    try:
        sent = importer.read(data, context).points
    except UserError as error:
        raise UserError(f"results: {error}") from None
    points = [point for point in sent if point.series.digest == series.digest]
    if not points:
        names = dict.fromkeys(f"{point.series.metric} of {point.series.problem}" for point in sent)
        first = "; ".join([*names][:3])
        raise UserError(f"results: no point of the series “{series}”, but of {len(names)}: {first}")
    for point in points:
        if point.revision.name != revision.name:
            raise UserError(f"results: of revision {point.revision.name}, not {revision.name}")
        if point.measured_at < row.request.created_at:
            raise UserError(f"results: measured at {point.measured_at}, before the request")
    return [replace(point, revision=key) for point in points]


@transaction.atomic
def _record(row: BisectionStep, points: list[Point], log: dict[str, str]) -> None:
    Bisection.objects.select_for_update().get(pk=row.bisection_id)  # as ``walk.cancel`` does
    work.finish(row, State.DONE, **log)
    batch = Batch.objects.create(key=str(row))
    point_storage.store(points, Source.AGAIN, batch)
    requests.close_answered(batch)


@transaction.atomic
def _reject(row: BisectionStep, reason: str, log: dict[str, str]) -> None:
    Bisection.objects.select_for_update().get(pk=row.bisection_id)
    work.finish(row, State.REJECTED, stage=Stage.RUN, reason=reason, **log)
    walk.skip(row.request, reason, None)


@contextmanager
def _empty_folder(row: BisectionStep) -> Iterator[Path]:
    """Yield an empty folder for one step, and remove it afterwards, with what workers that were
    killed over the same step left."""
    root: Path = settings.VAR_DIR / "bisect"
    root.mkdir(parents=True, exist_ok=True)
    for remains in root.glob(f"{row.pk}-*"):
        _remove(remains)
    folder = Path(tempfile.mkdtemp(prefix=f"{row.pk}-", dir=root))
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, including folders that a build has made read-only."""
    for path, names, _ in os.walk(folder):
        for name in names:
            child = Path(path, name)
            if not child.is_symlink():
                child.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
