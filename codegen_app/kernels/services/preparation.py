"""Preparing an imported graph: lowering, scheduling, rendering its candidates."""

from __future__ import annotations

from dataclasses import asdict

from django.conf import settings
from django.db import transaction

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import torch_comparisons
from codegen_app.graphs.services.imports import DEFAULT_TARGETS, import_limits
from codegen_app.graphs.signals import graph_prepared, graph_rejected
from codegen_app.kernels.services import builds, engine, recording
from codegen_app.platform import artifacts
from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.platform.served_targets import served_target_names
from codegen_app.workers import work
from codegen_app.workers.interrupt import Interruptible
from codegen_app.workers.models import State
from scheduler import untrusted
from scheduler.errors import MachineError, Stage, UserError
from scheduler.lowering import coverage
from scheduler.sandbox.process import Cancellation, Cancelled


def prepare(graph: Graph) -> None:
    """Prepare a claimed graph: schedule it, render its candidates, request their builds.

    A graph that the engine rejects is rejected with the engine's message. Raises
    ``work.LeaseLostError`` when another worker has claimed it.
    """
    cancellation, computing = Cancellation(), Interruptible()

    def stop() -> None:
        cancellation.cancel()
        computing.stop()

    with work.heartbeat(graph, stop):
        try:
            # Once in a process that can be stopped: a file can require unbounded work.
            file = artifacts.local_file(graph.file, ".pt2")
            names = tuple(graph.targets) or served_target_names()
            limits = import_limits(settings.PREPARE_MAX_S)
            untrusted.dry_run(file, names, limits, cancellation, graph.name)
            with computing:
                scheduled = engine.scheduled(graph.file.digest)
                wrapper = scheduled.wrapper(graph.name, graph.targets)
                prepared = recording.prepare(scheduled, graph.targets or DEFAULT_TARGETS)
        except Cancelled:
            raise work.LeaseLostError(f"graph {graph.pk} was claimed by another worker") from None
        except MachineError:
            raise
        except UserError as error:
            with transaction.atomic():
                work.finish(graph, State.REJECTED, stage=Stage.RULE, reason=str(error))
                graph_rejected.send(Graph, graph=graph, reason=str(error))
            return
        with transaction.atomic():
            lock_transaction(LockClass.RECORD_KERNELS)
            # First: if another worker has claimed the row, nothing is written.
            work.finish(
                graph,
                State.DONE,
                accounted=coverage.coverage_summary(scheduled.schedule.lowered),
                decisions=[asdict(decision) for decision in scheduled.schedule.decisions],
                wrapper=wrapper,
            )
            recording.record_schedule(graph, scheduled, prepared)
            builds.request_defaults(graph)
            torch_comparisons.request(graph)
    graph_prepared.send(Graph, graph=graph)
