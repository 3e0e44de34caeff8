"""Measuring: the task of one problem, on a device of this host."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from codegen_app.kernels.services import engine, problem_work
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import budgets, candidate_results, devices, ledger
from codegen_app.tuning.services import search as tuning_search
from codegen_app.workers import work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.sandbox.process import Cancellation, Cancelled


def run_task(task: TuningTask) -> None:
    """Run a claimed task. Raises ``work.LeaseLostError`` when the claim is lost meanwhile."""
    run = task.run
    TuningRun.objects.filter(pk=run.pk, state=State.QUEUED).update(
        state=State.RUNNING, started_at=Now()
    )
    cancellation, worked = Cancellation(), budgets.WorkTimer(task)
    with (
        work.heartbeat(task, cancellation.cancel, worked.fields) as lease_lost,
        devices.hold_device(run, lease_lost) as device,
    ):
        if device is None:
            raise work.LeaseLostError(
                f"task {task.pk} was claimed by another worker while it waited"
            )
        try:
            if isinstance(device, Rejected):
                reject_task(task, device)
            else:
                worked.begin()
                record_limits(task)
                tuning_search.search(task, device, worked, cancellation)
        except Cancelled:
            raise work.LeaseLostError(f"task {task.pk} was claimed by another worker") from None
        except MachineError:
            raise
        except UserError as error:  # for example, sizes that no memory holds
            reject_task(task, Rejected(Stage.LOAD, str(error)))


def record_limits(task: TuningTask) -> None:
    """Record the problem's work at the sizes of this run, which is shown beside its times."""
    scheduled = engine.scheduled(task.run.graph.file.digest)
    node = scheduled.node(task.template_node.name)
    problem_work.record(task.problem, node, scheduled.schedule.lowered, task.run.bindings)


def reject_task(task: TuningTask, why: Rejected) -> None:
    """Close a task that cannot be measured here with any candidate."""
    with transaction.atomic():
        TuningRun.objects.select_for_update().get(pk=task.run_id)
        work.finish(task, State.REJECTED, stage=why.stage, reason=why.reason)
        for candidate in task.candidates.filter(state__in=OPEN_STATES):
            candidate_results.record_result(candidate, why)
        ledger.close_run(task.run_id)
