"""A worker's part: running a build's instructions at a node's sizes, timed by the model."""

from __future__ import annotations

from django.db.models import QuerySet

from codegen_app.kernels.modelling import store
from codegen_app.kernels.modelling.requests import board_named
from codegen_app.kernels.models import KernelUse, Modelling
from codegen_app.kernels.services import engine
from codegen_app.platform import artifacts
from codegen_app.workers import work
from codegen_app.workers.interrupt import Interruptible
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.benchmark.case_builder import index_limits
from scheduler.codegen.benchmark_request import BenchmarkRequest
from scheduler.codegen.kernel import Launch
from scheduler.codegen.recorded_call import RecordedCall
from scheduler.cycles import kernel_model, launch_inputs
from scheduler.cycles.report import Report
from scheduler.errors import MachineError, Stage, UserError
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings, hint_bindings
from scheduler.ir.codec import decode, make_codec
from scheduler.ir.index.functions import evaluate
from scheduler.ir.index.text import parse_expr
from scheduler.ir.operations import Lowered


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
            fields = store.report_fields(report, build)
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


def _report(row: Modelling) -> Report:
    """Return the report. Raises ``UserError``, and ``FileNotFoundError`` if a file is gone."""
    build, target = row.build, targets.find(row.build.target)
    use = _kernel_use(row)
    if build.listing is None:
        raise UserError("the build has no listing: build the kernel again")
    listing = artifacts.read(build.listing).decode("utf-8", errors="replace")
    scheduled = engine.scheduled(use.template_node.graph.file.digest)
    lowered = scheduled.schedule.lowered
    bindings = hint_bindings(lowered.graph.symbols, row.sizes)
    request = _request(use, row, lowered, bindings)
    launches, memory = launch_inputs.prepare_launches(
        _launches(use),
        request,
        index_limits=index_limits(_node(scheduled, use), bindings),
        workspace_bytes=_workspace_bytes(use, request),
    )
    report = kernel_model.model_kernel(
        listing,
        target,
        board_named(build.target, row.board),
        launches,
        memory,
        kernel=build.kernel.name,
        sizes=row.sizes,
    )
    if not report.launches:
        raise UserError("the kernel launches nothing at these sizes")
    return report


def _kernel_use(row: Modelling) -> KernelUse:
    """Return the call to model: the requested one, else any of the kernel's."""
    uses = KernelUse.objects.filter(kernel=row.build.kernel).select_related(
        "kernel", "template_node__graph__file"
    )
    asked = uses.filter(pk=row.use_id) if row.use_id is not None else uses.none()
    use = asked.first() or uses.first()
    if use is None:
        raise UserError("no graph uses this kernel")
    return use


def _node(scheduled: engine.Scheduled, use: KernelUse) -> SchedulerNode:
    try:
        return scheduled.node(use.template_node.name)
    except KeyError:
        raise UserError(
            "the graph was scheduled by another version of Kiln with other nodes: import the model"
            " again"
        ) from None


def _request(
    use: KernelUse, row: Modelling, lowered: Lowered, bindings: Bindings
) -> BenchmarkRequest:
    """Return the kernel's call with the tensors of the graph, at the row's sizes."""
    names = {name: name for name in lowered.buffers}
    call = RecordedCall(use.kernel.name, use.kernel.args, use.call, names)
    return call.request(row.build.target, bindings, lowered.buffers)


def _workspace_bytes(use: KernelUse, request: BenchmarkRequest) -> int:
    return evaluate(parse_expr(use.kernel.workspace_bytes), request.numbers)


def _launches(use: KernelUse) -> tuple[Launch, ...]:
    """Return the launches of the kernel's C function, as the engine represents them."""
    return decode(make_codec(), use.kernel.launches, tuple[Launch, ...], use.kernel.name)
