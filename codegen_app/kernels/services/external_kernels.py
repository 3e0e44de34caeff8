"""Analysing external kernels: a user submits a file with its launch, a worker models it.

The file is not read here or in a worker's own process: it is disassembled and modelled in sandboxed
processes with limits of time and memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet

from codegen_app.accounts import audit
from codegen_app.kernels.modelling.jobs import time_fields
from codegen_app.kernels.modelling.requests import board_named
from codegen_app.kernels.models import ForeignKernel
from codegen_app.platform import artifacts
from codegen_app.platform.config import sandbox
from codegen_app.workers import queue, work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler import targets
from scheduler.cycles.kernel_file import KernelFile, read_kernels
from scheduler.cycles.launches.parser import read_launch
from scheduler.cycles.untrusted import ProcessLimits, model_untrusted
from scheduler.errors import MachineError, Stage, UserError
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.targets import Board
from scheduler.targets.modelled import TARGETS
from scheduler.text import shorten, to_identifier

MAX_OPEN = 5  # waiting or finished, per person
READING, MODELLING = "reading", "modelling"
_SUFFIXES = {".hsaco", ".co", ".o", ".s", ".amdgcn"}


def boards() -> tuple[Board, ...]:
    """Return the boards that kernels can be modelled on."""
    return tuple(board for name in TARGETS for board in targets.boards(name))


def submit(
    content: IO[bytes], name: str, launch: str, board: Board, actor: AbstractBaseUser
) -> ForeignKernel:
    """Create a row for a file and its launch. Raises ``UserError`` for an invalid launch, and if
    that person has too many open."""
    sandbox.require_uploads(settings.FENCE)
    read_launch(launch)
    with transaction.atomic():
        own_rows = ForeignKernel.objects.filter(requested_by_id=actor.pk, state__in=OPEN_STATES)
        if own_rows.count() >= MAX_OPEN:
            raise UserError(f"you have {MAX_OPEN} unfinished kernels: wait until one finishes")
        row = ForeignKernel.objects.create(
            name=shorten(name or "kernel", 200),
            file=artifacts.store_large(content, ".kernel"),
            launch=launch,
            target=board.target,
            board=board.name,
            requested_by_id=actor.pk,
        )
        audit.record(actor, "look", row)
        queue.notify(queue.Kind.COMPILE)  # its workers model kernels
    return row


def queued_kernels() -> QuerySet[ForeignKernel]:
    """Return the kernels that a worker can analyse."""
    return ForeignKernel.objects.all()


def run(row: ForeignKernel) -> None:
    """Analyse a claimed kernel; one that cannot be read or modelled is rejected with one line.

    Raises ``work.LeaseLostError`` if it was cancelled or given to another worker.
    """
    cancellation = Cancellation()
    phase = {"phase": READING}
    with work.heartbeat(row, cancellation.cancel, lambda: dict(phase)):
        try:
            fields = _analyse(row, cancellation, phase)
        except Cancelled:
            raise work.LeaseLostError(f"{row} was cancelled, or is another worker's") from None
        except MachineError:
            raise
        except FileNotFoundError:
            reason = "its file is missing from the storage: submit it again"
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=reason)
            return
        except UserError as error:
            stage = Stage.LOAD if phase["phase"] == READING else Stage.RUN
            work.finish(row, State.REJECTED, stage=stage, reason=str(error)[:500])
            return
    work.finish(row, State.DONE, **fields)


def _analyse(
    row: ForeignKernel, cancellation: Cancellation, phase: dict[str, str]
) -> dict[str, Any]:
    sandbox.require_uploads(settings.FENCE)  # this worker's setting; it may be on another machine
    board = board_named(row.target, row.board)
    launch = read_launch(row.launch)
    with tempfile.TemporaryDirectory(prefix="kiln-kernel-") as folder:
        # Errors name the file; the sender's name cannot lead outside the folder.
        stem = to_identifier(Path(row.name).stem)[:80] or "kernel"
        suffix = Path(row.name).suffix
        path = Path(folder) / f"{stem}{suffix if suffix in _SUFFIXES else ''}"
        path.write_bytes(artifacts.read(row.file))
        kernels = read_kernels(path, targets.find(row.target), launch.function, cancellation)
    function = kernels.select_kernel(launch.function)
    listing = artifacts.store(kernels.listing.encode(), ".s")
    phase["phase"] = MODELLING
    limits = ProcessLimits(settings.FOREIGN_KERNEL_SECONDS, settings.FOREIGN_KERNEL_MEMORY_BYTES)
    only = KernelFile(kernels.name, kernels.listing, (function,))
    report = model_untrusted(only, board, row.launch, limits, cancellation)
    return {
        "phase": "",
        "function": function,
        "version": report.version,
        "listing": listing,
        **time_fields(report),
    }
