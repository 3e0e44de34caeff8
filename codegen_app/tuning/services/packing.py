"""Packing large bundles: requested by a person, done by a worker, once for all who request it."""

from __future__ import annotations

import tempfile

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import IntegrityError, transaction

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import KernelUse, Packing
from codegen_app.platform import artifacts
from codegen_app.tuning.services import bundles
from codegen_app.tuning.services.bundles import BundleRequest
from codegen_app.workers import queue, work
from codegen_app.workers.interrupt import Interruptible
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.errors import MachineError, Stage, UserError

MAX_OPEN = 5  # waiting or being packed, per person


def find_packing(requested: BundleRequest) -> Packing | None:
    """Return the packing of that request in any state; None if nobody requested it."""
    return Packing.objects.select_related("file").filter(key=requested.key).first()


def request_packing(requested: BundleRequest, actor: AbstractBaseUser) -> Packing:
    """Return the existing packing or a new one; it is queued again if it failed, was cancelled, or
    lost its file.

    Raises ``UserError`` if that person has too many open.
    """
    with transaction.atomic():
        row, is_new = Packing.objects.get_or_create(
            key=requested.key,
            defaults={
                "graph": requested.graph,
                "use": requested.use,
                "times": requested.times,
                "targets": list(requested.targets),
                "kernels": requested.kernels,
                "requested_by_id": actor.pk,
            },
        )
        if not is_new:
            if row.is_open or row.state == State.DONE:
                return row
            ended = Packing.objects.filter(pk=row.pk, state=row.state)
            fields = {"packed": 0, "file": None, "requested_by_id": actor.pk}
            if not ended.update(**work.REQUEUED_FIELDS, **fields):
                return row
        mine = Packing.objects.filter(requested_by_id=actor.pk, state__in=OPEN_STATES)
        if mine.count() > MAX_OPEN:
            raise UserError(f"you have {MAX_OPEN} unfinished bundles: wait until one finishes")
        audit.record(actor, "pack", row)
        queue.notify(queue.Kind.PREPARE)  # its workers pack
    row.refresh_from_db()
    return row


def may_cancel(requested_by: int | None, person: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether a person may cancel: the one who requested it, and the site's staff."""
    mine = person.is_authenticated and requested_by == person.pk
    return bool(mine or getattr(person, "is_staff", False))


def mark_missing(row: Packing) -> None:
    """Record that the storage lost or damaged the file, so that it can be requested again."""
    reason = "its file is missing or damaged: request it again"
    Packing.objects.filter(pk=row.pk, state=State.DONE).update(
        state=State.REJECTED, stage=Stage.LOAD, reason=reason, file=None
    )


def pack(row: Packing) -> None:
    """Run a claimed packing: generate the code, pack it, store the file.

    A packing that fails is rejected with one line. Raises ``work.LeaseLostError`` if it was
    cancelled or given to another worker.
    """
    computing, done = Interruptible(), dict[str, int]()

    def progress(packed: int, kernels: int) -> None:
        done.update(packed=packed, kernels=kernels)

    with work.heartbeat(row, computing.stop, done.copy) as lease_lost:
        try:
            with computing:
                if row.use_id is not None:
                    uses = KernelUse.objects.select_related("kernel", "template_node__graph__file")
                    requested = bundles.kernel_bundle(uses.get(pk=row.use_id))
                else:
                    graph = Graph.objects.select_related("file").get(pk=row.graph_id)
                    requested = bundles.graph_bundle(graph, row.times)
            _update_key(row, requested)
            with tempfile.TemporaryFile(suffix=".zip") as out:
                with computing:
                    bundles.write(requested, out, progress)
                if lease_lost.is_set():
                    raise work.LeaseLostError(f"{row} was cancelled, or is another worker's")
                stored = artifacts.store_large(out, ".zip")
        except MachineError:
            raise
        except UserError as error:
            work.finish(row, State.REJECTED, stage=Stage.RULE, reason=str(error))
            return
        work.finish(row, State.DONE, file=stored, targets=list(requested.targets), **done)


def _update_key(row: Packing, requested: BundleRequest) -> None:
    """Update the key: selections may have changed since the request, and the current ones are
    packed."""
    if requested.key == row.key:
        return
    try:
        with transaction.atomic():
            has_lease = work.extend(row, key=requested.key)
    except IntegrityError:
        raise UserError("its contents changed, and a bundle with the new contents exists") from None
    if not has_lease:
        raise work.LeaseLostError(f"{row} is held by another worker")
