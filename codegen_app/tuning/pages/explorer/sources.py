"""The trials that the pages of a node and of a run explore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from codegen_app.tuning.pages.explorer.builder import LANGUAGE, Config, ExplorerSource
from codegen_app.tuning.pages.explorer.model import EMULATED, MEASURED, MODELLED, Trial
from codegen_app.tuning.pages.node.query import CandidateRow, NodePage
from codegen_app.tuning.pages.run import candidate_columns
from codegen_app.tuning.pages.run import columns as ledger_columns
from codegen_app.tuning.pages.run.query import LedgerRow, RunPage
from codegen_app.tuning.queries.measured_row import MeasuredRow
from scheduler.tuning.ledger import CandidateState

_OF_NODE = "order of the last measurement or rejection"
_OFFERED = "generator order (0 is the default)"
_OF_RUN = "order in which the run tried candidates"


def node_source(page: NodePage, rows: Sequence[CandidateRow], times: str) -> ExplorerSource:
    """Return the displayed candidates of a node; ``times`` says whether the measured ones, in the
    page's bucket, or modelled ones."""
    bucket = page.bucket
    if times == MODELLED:
        at = page.modelled_at
        where, sizes = (f"{at.board} ({at.target})", at.sizes) if at is not None else ("", {})
    elif bucket is not None:
        times = EMULATED if bucket.emulated else MEASURED
        where = f"{bucket.device_name} ({bucket.target}), {bucket.toolchain}"
        sizes = bucket.bindings
    else:
        where, sizes = "", {}
    return ExplorerSource(
        trials=[_candidate_trial(row, times) for row in rows],
        configs=_configs(rows),
        node=page.name,
        problem=page.problem,
        times=times,
        where=where,
        sizes=sizes,
        ordered_by=_OFFERED if times == MODELLED else _OF_NODE,
        key=_column_key(candidate_columns.parameter_key),
        others={
            str(CandidateState.REJECTED): [
                config for group in page.rejected for config in group.configs if config
            ]
        },
        modelled_where=page.modelled_at.where if page.modelled_at is not None else "",
    )


def _candidate_trial(row: CandidateRow, times: str) -> Trial:
    modelled, timing, failure = row.modelled, row.timing, row.failure
    trial = Trial(
        row=row.position,
        kernel=row.kernel,
        url=row.url,
        state=row.outcome,
        stage=failure.stage if failure and timing is None else "",
        reason=failure.reason if failure and timing is None else "",
        order=row.order,
        modelled_us=modelled.time_us if modelled else None,
        best=row.selected,
    )
    if times != MODELLED:
        return trial if timing is None else _with_measured_time(trial, timing)
    # The order is that of generation and no trial is measured: measured times belong to other
    # conditions.
    state = CandidateState.MODELLED if modelled else CandidateState.NOT_MODELLED
    trial = replace(trial, state=str(state), stage="", reason="", order=trial.row)
    if modelled is None:
        return trial
    return replace(
        trial, time_us=modelled.time_us, low_us=modelled.low_us, high_us=modelled.high_us
    )


def run_source(page: RunPage, rows: Sequence[LedgerRow], node: str) -> ExplorerSource | None:
    """Return a run's candidates for the problem of ``node``; without it, or if it has none, for the
    node with the most timed candidates. None if there is no candidate."""
    counts: dict[str, int] = {}
    for row in rows:
        has_time = row.median_ns is not None or row.modelled is not None
        counts[row.node] = counts.get(row.node, 0) + has_time
    # Most times first, then in the order of the graph.
    nodes = sorted(counts, key=counts.__getitem__, reverse=True)
    if not nodes:
        return None
    node = node if node in nodes else nodes[0]
    node_rows = [row for row in rows if row.node == node]
    run = page.run
    tried = [row for row in node_rows if row.kernel]
    without: dict[str, list[Config]] = {}
    for row in node_rows:
        if not row.kernel:
            without.setdefault(row.outcome, []).append(row.config)
    return ExplorerSource(
        trials=[_ledger_trial(row, page.kind) for row in tried],
        configs=_configs(tried),
        node=node,
        problem=node_rows[0].problem,
        times=page.kind or MEASURED,
        where=f"{run.imported or run.device} ({run.target})",
        sizes=run.bindings,
        ordered_by=_OF_RUN,
        key=_column_key(ledger_columns.parameter_key),
        others=without,
        nodes=tuple(nodes),
        modelled_where=page.modelled_device,
    )


def _ledger_trial(row: LedgerRow, kind: str) -> Trial:
    trial = Trial(
        row=row.id,
        kernel=row.kernel,
        url=row.kernel_url,
        state=row.outcome,
        stage=row.stage,
        reason=row.reason if row.stage else "",
        order=row.order or None,
        at_s=row.at_s,
        modelled_us=row.modelled_us,
        best=row.chosen,
    )
    if kind == MODELLED:
        if row.modelled is None or row.outcome != CandidateState.MODELLED:
            return trial
        band = row.modelled.time_ns
        return replace(trial, time_us=_us(band.mid), low_us=_us(band.low), high_us=_us(band.high))
    return _with_measured_time(trial, row)


def _with_measured_time(trial: Trial, row: MeasuredRow) -> Trial:
    """Set the median, if there is one."""
    low, high = _us(row.low_ns), _us(row.high_ns)
    return replace(trial, time_us=_us(row.median_ns), low_us=low, high_us=high, n=row.n)


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1000


def _configs(rows: Sequence[CandidateRow] | Sequence[LedgerRow]) -> list[Config]:
    """Return the candidates' configurations, with the language as a parameter if there are
    several."""
    if len({row.language for row in rows}) < 2:
        return [row.config for row in rows]
    return [{**row.config, LANGUAGE: row.language} for row in rows]


def _column_key(parameter_key: Callable[[str], str]) -> Callable[[str], str]:
    """Return the key of a parameter's column in addresses; the language has its own."""
    return lambda name: LANGUAGE if name == LANGUAGE else parameter_key(name)
