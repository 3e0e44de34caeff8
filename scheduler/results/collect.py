"""Converts a tuning run to the records of a file: one run for each binding of the sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from scheduler.benchmark.measurement import Measurement
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.ir.graph import Graph
from scheduler.ir.index.text import print_expr
from scheduler.results.checks import CANCELLED, DONE, REJECTED
from scheduler.results.model import (
    BuildFacts,
    CandidateRecord,
    Compiler,
    GraphId,
    KernelText,
    MeasurementRecord,
    OperandRecord,
    Origin,
    Results,
    RunRecord,
    TaskRecord,
)
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.budget import Budget
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.tuner import ProblemResult, TuningResult

_BUDGET_SPENT = "the budget was spent"
_MAX_REASON, _MAX_DETAIL = 500, 2**20  # characters


@dataclass(frozen=True)
class RunContext:
    """What the result itself does not contain. ``compiler`` compiles the target's base language,
    ``other_compilers`` compile sources in further languages, keyed by the name of such a source
    file."""

    origin: Origin
    graph: Graph
    device: DeviceInfo
    compiler: Compiler
    seed: int
    strategy: str
    budget: Budget
    started: datetime
    other_compilers: Mapping[str, Compiler] = field(default_factory=dict)

    def compiled_by(self, source_file: str) -> int:
        """Return the index of the run's compiler for such sources."""
        return (
            [*self.other_compilers].index(source_file) + 1
            if source_file in self.other_compilers
            else 0
        )


def collect_results(
    result: TuningResult,
    context: RunContext,
    nodes: Collection[str],
    listings: Mapping[str, str],
) -> Results:
    """Collect the problems of these scheduled nodes. Others (the parts of fused kernels, tuned
    separately) belong to another schedule and are left out. ``listings``: by code digest."""
    by_sizes: dict[tuple[tuple[str, int], ...], list[ProblemResult]] = {}
    for problem_result in result.problems:
        if problem_result.problem.node.name in nodes:
            by_sizes.setdefault(tuple(sorted(problem_result.problem.bindings.items())), []).append(
                problem_result
            )
    finished = context.started + timedelta(seconds=round(result.seconds, 6))
    runs = tuple(
        RunRecord(
            origin=context.origin,
            graph=GraphId(context.graph.name, context.graph.digest),
            device=context.device.id,
            target=context.device.target,
            bindings=dict(problems[0].problem.bindings),
            seed=context.seed,
            strategy=context.strategy,
            budget=context.budget,
            candidate_limit=None,
            state=DONE,
            reason=result.ended[:_MAX_REASON],
            note="",
            started_at=context.started.isoformat(),
            finished_at=finished.isoformat(),
            devices=(context.device,),
            compilers=(context.compiler, *context.other_compilers.values()),
            tasks=tuple(
                task_record(
                    problem_result.problem,
                    problem_result.seconds,
                    _candidates(problem_result, context),
                )
                for problem_result in problems
            ),
        )
        for problems in by_sizes.values()
    )
    used_kernels = {
        record.kernel for run in runs for task in run.tasks for record in task.candidates
    }
    kernels = {
        caller.name: kernel_text(caller.kernel)
        for problem_result in result.problems
        for caller in problem_result.problem.callers
        if caller.name in used_kernels
    }
    digests = {
        record.build.code_digest
        for run in runs
        for task in run.tasks
        for record in task.candidates
        if record.build is not None
    }
    listings = {digest: text for digest, text in sorted(listings.items()) if digest in digests}
    return Results(dict(sorted(kernels.items())), runs, listings)


def kernel_text(kernel: RenderedKernel) -> KernelText:
    """Return a kernel as the file stores it."""
    return KernelText(
        source_digest=hashlib.sha256(kernel.source.encode()).hexdigest(),
        template=kernel.template,
        config=dict(kernel.config),
        source_file=kernel.source_file,
        source=kernel.source,
        args=kernel.args,
        launches=kernel.launches,
        workspace_bytes=kernel.workspace_bytes,
    )


def call_text(call: KernelCall) -> dict[str, str]:
    """Return a call's arguments: names of buffers, and expressions as text."""
    return {
        name: value if isinstance(value, str) else print_expr(value)
        for name, value in call.args.items()
    }


def timed_record(measured: Measurement, device: int) -> MeasurementRecord:
    """Return a measurement as the file stores it."""
    return MeasurementRecord(
        device=device,
        batch=measured.batch,
        samples_ns=measured.samples_ns,
        rejected=measured.rejected,
        readings=measured.readings,
        metrics=measured.metrics,
        check=measured.check,
    )


def task_record(
    problem: TuningProblem, seconds: float, candidates: Iterable[CandidateRecord]
) -> TaskRecord:
    """Return a problem, which took so many seconds, as the file stores it."""
    return TaskRecord(
        problem=problem.identity.digest,
        text=problem.identity.text,
        node=problem.node.name,
        title=problem.title[:300],
        operands=tuple(
            OperandRecord(arg.dtype, tuple(arg.size), tuple(arg.stride))
            for arg in problem.tensors
            if not arg.is_output
        ),
        shape=problem.shape,
        state=DONE,
        reason="",
        spent_s=round(seconds, 6),
        candidates=tuple(candidates),
    )


def _candidates(problem_result: ProblemResult, context: RunContext) -> Iterator[CandidateRecord]:
    """Yield each kernel once: of configurations that render alike, the selected entry, else the
    first. Entries that the rules rejected come last, as in the ledger."""
    callers = {caller.name: caller for caller in reversed(problem_result.problem.callers)}
    selected = problem_result.chosen.kernel if problem_result.chosen is not None else ""
    base_source_file = problem_result.problem.callers[
        0
    ].kernel.source_file  # the default is in the base language
    seen: set[str] = set()
    for position, entry in enumerate(problem_result.entries):
        is_selected = entry.state is CandidateState.CHOSEN
        duplicate = entry.kernel == selected and not is_selected
        if entry.kernel and (entry.kernel in seen or duplicate):
            continue
        seen.add(entry.kernel)
        record = CandidateRecord(
            position=position,
            state=CANCELLED if entry.state is CandidateState.UNTRIED else REJECTED,
            config=dict(entry.config),
            stage=entry.stage,
            reason=entry.reason[:_MAX_REASON],
            detail=entry.detail[:_MAX_DETAIL],
            chosen=is_selected,
            tied=entry.tied,
            at_s=round(entry.at_s, 6) if entry.order else None,
            kernel="",
            description="",
            call={},
            line_origins=(),
            build=None,
            timed=None,
        )
        caller = callers.get(entry.kernel)
        # Without a compiler a candidate has no build, and its entry no kernel.
        if caller is not None and caller.kernel.source_file not in (
            base_source_file,
            *context.other_compilers,
        ):
            caller = None
        if caller is None or record.state == CANCELLED:
            yield replace(record, reason=record.reason or _BUDGET_SPENT)
            continue
        compiler = context.compiled_by(caller.kernel.source_file)
        yield replace(
            record,
            state=REJECTED if entry.measurement is None else DONE,
            kernel=caller.name,
            description=entry.description[:300],
            call=call_text(caller.call),
            line_origins=caller.kernel.line_origins,
            build=BuildFacts(compiler, entry.code_digest, entry.compile_s, entry.resources),
            timed=None if entry.measurement is None else timed_record(entry.measurement, 0),
        )
