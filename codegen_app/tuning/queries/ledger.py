"""A run's ledger as the engine writes it: the outcome of every candidate, the curve, the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.bundle.manifest import TimeSource
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.dtypes import DType
from scheduler.tuning.autotune_log import autotune_text
from scheduler.tuning.ledger import (
    LEDGER_SCHEMA,
    CandidateState,
    CurvePoint,
    Entry,
    Operand,
    state_of,
)
from scheduler.tuning.modelled_time import ModelledTime, from_json


@dataclass(frozen=True)
class Curve:
    """The best time so far of one problem."""

    node: str
    problem: str
    points: tuple[CurvePoint, ...]


def run_ledger(run: TuningRun) -> Iterator[dict[str, Any]]:
    """Yield the lines of the run's ledger, the run's own facts first (3 queries)."""
    yield {
        "record": "run",
        "schema": LEDGER_SCHEMA,
        "run": run.pk,
        "graph": run.graph.name,
        "accounted": run.graph.accounted,
        "device": run.device,
        "target": run.target,
        "times": TimeSource.MODELLED if run.is_modelled else TimeSource.MEASURED,
        "state": run.state,
        "budget_s": run.budget_s,
        "max_compiles": run.max_compiles,
        "max_measurements": run.max_measurements,
        "strategy": run.strategy if run.has_budget else "",
        "why": run.why,
    }
    for task, candidates in _by_task(run):
        for entry in ledger_entries(run, candidates, _descriptions(task)):
            yield {**entry.to_json(), "shape": task.shape}


def run_log(run: TuningRun) -> str:
    """Return the ``AUTOTUNE`` log: a section per measured problem."""
    parts: list[str] = []
    for task, candidates in _by_task(run):
        if not task.title:
            continue
        text = ""
        if (earlier := task.begins_with) is not None:
            text = f"begins with the fastest as modelled for {earlier.run.device}"
            text += f" in run {earlier.run_id}\n"
        operands = [
            Operand(
                DType.from_label(operand["dtype"]).torch,
                tuple(operand["size"]),
                tuple(operand["stride"]),
            )
            for operand in task.operands
        ]
        entries = ledger_entries(run, candidates, _descriptions(task))
        section = autotune_text(
            task.title, operands, entries, task.spent_s, modelled=run.is_modelled
        )
        parts.append(text + section)
    return "\n".join(parts)


def ledger_entries(
    run: TuningRun, candidates: Iterable[Candidate], descriptions: dict[int, str]
) -> list[Entry]:
    """Return the candidates of one task as ledger entries, in their order."""
    rows = sorted(candidates, key=lambda row: row.position)
    order = trial_orders(rows)
    entries: list[Entry] = []
    for row in rows:
        kernel, result = row.kernel, row.result
        text = " ".join(f"{key}={value}" for key, value in row.config.items())
        build = row.build if "build" in row._state.fields_cache else None
        entry = Entry(
            problem=row.task.title or str(row.task.problem),
            node=row.task.template_node.name,
            bindings=run.bindings,
            kernel=kernel.name if kernel else "",
            template=kernel.template if kernel else "",
            config=row.config,
            description=descriptions.get(kernel.pk, text) if kernel else text,
            state=_state(row),
            is_default=row.position == 0,
            stage=row.stage,
            reason=row.reason,
            detail=row.detail if "detail" not in row.get_deferred_fields() else "",
            order=order.get(row.pk, 0),
            at_s=elapsed_s(row) if row.pk in order else 0.0,
            measurement=result.measurement(kernel.name, run.device) if kernel and result else None,
            modelled=modelled_result(row),
            tied=row.tied,
            code_digest=build.code_digest if build else "",
            compile_s=(build.duration_s or 0.0) if build and not build.cached else 0.0,
            resources=build.resources if build else {},
        )
        entries.append(entry)
    return entries


def trial_orders(candidates: Iterable[Candidate]) -> dict[int, int]:
    """Return the order, from 1, in which the tried candidates of each task were tried, by key.
    Candidates come with their tasks and runs."""
    counts: dict[int, int] = defaultdict(int)
    orders: dict[int, int] = {}
    tried = [
        row
        for row in candidates
        if row.kernel_id is not None and row.state not in (*OPEN_STATES, State.CANCELLED)
    ]
    for row in sorted(
        tried, key=lambda row: (row.finished_at or row.task.run.created_at, row.position)
    ):
        counts[row.task_id] += 1
        orders[row.pk] = counts[row.task_id]
    return orders


def elapsed_s(row: Candidate) -> float:
    """Seconds from the start of the run until the candidate's outcome was known; 0 if not
    recorded."""
    since = row.task.run.started_at or row.task.run.created_at
    return (row.finished_at - since).total_seconds() if row.finished_at else 0.0


def candidate_outcome(state: str, stage: str, *, modelled: bool = False) -> str:
    """Return a candidate's outcome in the ledger's terms, whether or not it was selected."""
    if state == State.DONE:
        return str(CandidateState.MODELLED if modelled else CandidateState.MEASURED)
    if state == State.QUARANTINED:
        return "quarantined"
    if state == State.REJECTED:
        return str(state_of(Rejected(Stage(stage or Stage.CRASH), "")))
    return "waiting" if state in OPEN_STATES else str(CandidateState.UNTRIED)


def _by_task(run: TuningRun) -> Iterator[tuple[TuningTask, list[Candidate]]]:
    rows = (
        Candidate.objects.filter(task__run=run)
        .select_related(
            *("task__problem", "task__template_node", "task__begins_with__run"),
            *("kernel", "result", "build"),
        )
        .defer("kernel__source", "build__log", "task__template_node__rejected")
        .order_by("task__template_node__position", "position")
    )
    by_task: dict[int, list[Candidate]] = defaultdict(list)
    for row in rows:
        by_task[row.task_id].append(row)
    for candidates in by_task.values():
        yield candidates[0].task, candidates


def _descriptions(task: TuningTask) -> dict[int, str]:
    uses = KernelUse.objects.filter(template_node=task.template_node_id)
    return dict(uses.values_list("kernel", "description"))


def modelled_result(row: Candidate) -> ModelledTime | None:
    """Return the modelled time of a candidate; None if it was not modelled, or by another version
    of Kiln, whose model differs."""
    with suppress(UserError):
        return from_json(row.modelled) if row.modelled is not None else None
    return None


def _state(row: Candidate) -> CandidateState:
    if row.chosen:
        return CandidateState.CHOSEN
    if row.state == State.DONE:
        return CandidateState.MEASURED if row.result_id else CandidateState.MODELLED
    if row.state in {State.REJECTED, State.QUARANTINED}:
        return state_of(Rejected(Stage(row.stage or Stage.CRASH), row.reason))
    return CandidateState.UNTRIED
