"""A worker's part: running a build's instructions at a node's sizes, timed by the model."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from codegen_app.kernels.modelling.requests import board_named
from codegen_app.kernels.models import Build, KernelUse, Modelling
from codegen_app.kernels.services import engine
from codegen_app.platform import artifacts
from codegen_app.workers import work
from codegen_app.workers.interrupt import Interruptible
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.benchmark.case_builder import index_limits
from scheduler.codegen.kernel import Launch
from scheduler.codegen.recorded_call import RecordedCall
from scheduler.cycles import kernel_model, launch_inputs, report_json
from scheduler.cycles.report import Report
from scheduler.errors import MachineError, Stage, UserError
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.codec import decode, make_codec
from scheduler.ir.index.functions import evaluate
from scheduler.ir.index.text import parse_expr


def queued_modellings() -> QuerySet[Modelling]:
    """Return modellings that can be done now: those whose build exists."""
    return Modelling.objects.filter(build__state=State.DONE)


def run(row: Modelling) -> None:
    """Run a claimed modelling; one that cannot be modelled is rejected with one line.

    Raises ``work.LeaseLostError`` if it was cancelled or given to another worker.
    """
    computing = Interruptible()
    build = row.build
    with work.heartbeat(row, computing.stop) as lease_lost:
        try:
            with computing:
                report = _report(row)
            fields = report_fields(report, build)
        except MachineError:
            raise
        except FileNotFoundError:
            reason = "a required file is missing from the storage: build the kernel again"
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=reason)
            return
        except UserError as error:
            work.finish(row, State.REJECTED, stage=Stage.RUN, reason=str(error))
            return
        if lease_lost.is_set():
            raise work.LeaseLostError(f"{row} was cancelled, or is another worker's")
        work.finish(row, State.DONE, **fields)


def time_fields(report: Report) -> dict[str, Any]:
    """Return the columns of any kernel with a report; the report's file is stored."""
    return {
        "report": artifacts.store(report_json.write(report), ".json"),
        "low_us": report.time_us.low,
        "time_us": report.time_us.mid,
        "high_us": report.time_us.high,
        "sentence": report.sentence,
    }


def report_fields(report: Report, build: Build) -> dict[str, Any]:
    """Return the columns of a finished modelling; the report's file is stored."""
    return {
        **time_fields(report),
        "code_digest": build.code_digest,
        "unknown": dict(report.unknown),
    }


def _report(row: Modelling) -> Report:
    """Return the report. Raises ``UserError``, and ``FileNotFoundError`` if a file is gone."""
    build = row.build
    uses = KernelUse.objects.filter(kernel=build.kernel).select_related(
        "kernel", "template_node__graph__file"
    )
    # The requested call, else any of the kernel's.
    use = uses.filter(pk=row.use_id or 0).first() or uses.first()
    if use is None:
        raise UserError("no graph uses this kernel")
    if build.listing is None:
        raise UserError("the build has no listing: build the kernel again")
    listing = artifacts.read(build.listing).decode("utf-8", errors="replace")
    scheduled = engine.scheduled(use.template_node.graph.file.digest)
    lowered = scheduled.schedule.lowered
    try:
        node = scheduled.node(use.template_node.name)
    except KeyError:
        raise UserError(
            "the graph was scheduled by another version of Kiln with other nodes: import the model"
            " again"
        ) from None
    # The kernel's call with the tensors of the graph, at the row's sizes.
    bindings = hint_bindings(lowered.graph.symbols, row.sizes)
    names = {name: name for name in lowered.buffers}
    call = RecordedCall(use.kernel.name, use.kernel.args, use.call, names)
    request = call.request(build.target, bindings, lowered.buffers)
    launches, memory = launch_inputs.prepare_launches(
        decode(make_codec(), use.kernel.launches, tuple[Launch, ...], use.kernel.name),
        request,
        index_limits=index_limits(node, bindings),
        workspace_bytes=evaluate(parse_expr(use.kernel.workspace_bytes), request.numbers),
    )
    report = kernel_model.model_kernel(
        listing,
        targets.find(build.target),
        board_named(build.target, row.board),
        launches,
        memory,
        kernel=build.kernel.name,
        sizes=row.sizes,
    )
    if not report.launches:
        raise UserError("the kernel launches nothing at these sizes")
    return report
