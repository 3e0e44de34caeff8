"""Requesting modelled times of a kernel: a row per board, which a worker models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.accounts import audit
from codegen_app.graphs.services.sizes import checked_bindings
from codegen_app.kernels.models import Build, KernelUse, Modelling
from codegen_app.kernels.services import builds
from codegen_app.platform import artifacts
from codegen_app.workers import queue, work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler import targets
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.recipe import can_build
from scheduler.cycles.report import VERSION
from scheduler.errors import UserError
from scheduler.targets import Board
from scheduler.targets.modelled import TARGETS

_PRIORITY = 30


def boards(source_file: str) -> tuple[Board, ...]:
    """The boards that kernels of such sources can be modelled on."""
    return tuple(
        board
        for name in TARGETS
        if can_build(targets.find(name), source_file)
        for board in targets.boards(name)
    )


@transaction.atomic
def request_modelling(
    use: KernelUse,
    on: Sequence[Board],
    sizes: Mapping[str, int],
    actor: AbstractBaseUser | None,
    shown: Build | None = None,
) -> list[Modelling]:
    """Return a row per board, existing or new; it is queued again if it failed, was cancelled, its
    report was lost, or the build's code has changed.

    ``use`` is the node that calls the kernel, ``sizes`` has the symbols that differ from their
    hints. The build is ``shown`` for its target, and for others the newest with the default flags,
    which is requested if there is none. Raises ``UserError`` for an invalid symbol or size, and for
    a target that no compiler here builds for.
    """
    bound = checked_sizes(use, sizes)
    rows = []
    for board in on:
        if shown is not None and shown.target == board.target and shown.state == State.DONE:
            build = shown
        else:
            candidates = Build.objects.filter(
                kernel=use.kernel, target=board.target, flags=list(DEFAULT_FLAGS.values)
            )
            latest = candidates.filter(state=State.DONE).order_by("-finished_at").first()
            build = latest or builds.request_build(use.kernel, board.target, DEFAULT_FLAGS, actor)
        key = {"build": build, "board": board.name, "sizes": bound, "version": VERSION}
        fields = {"use": use, "priority": _PRIORITY, "requested_by_id": audit.actor_id(actor)}
        row, is_queued = Modelling.objects.get_or_create(**key, defaults=fields)
        same = Modelling.objects.filter(pk=row.pk)
        if not is_queued and row.is_open:
            same.filter(priority__lt=_PRIORITY).update(priority=_PRIORITY)
        elif not is_queued:
            is_current = row.state == State.DONE and row.code_digest == row.build.code_digest
            if not (is_current and row.report is not None and artifacts.is_whole(row.report)):
                closed = same.exclude(state__in=OPEN_STATES)
                is_queued = bool(closed.update(**work.REQUEUED_FIELDS, **fields))
        if is_queued:
            audit.record(actor, "model", row)
        row.refresh_from_db()
        rows.append(row)
    queue.notify(queue.Kind.COMPILE)  # its workers model kernels
    return rows


def checked_sizes(use: KernelUse, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the problem's sizes, those left out at their hints. Raises ``UserError``."""
    node = use.template_node
    bindings = checked_bindings(node.graph, sizes)
    symbols = node.problem.symbols if node.problem else bindings
    return {name: bindings[name] for name in sorted(symbols)}


def board_named(target: str, name: str) -> Board:
    """Return a row's board. Raises ``UserError`` for one that this version does not know."""
    for board in targets.boards(target):
        if board.name == name:
            return board
    raise UserError(f"this version of Kiln has no board {name} for {target}")
