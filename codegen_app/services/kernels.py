"""Recording what the engine made: scheduled nodes, their problems, and the rendered candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from codegen_app.models import GeneratedKernel, Graph, KernelUse, Problem, TemplateNode
from codegen_app.services import limits
from codegen_app.services.engine import Scheduled
from scheduler.codegen import problem
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.codegen.scheduling import RejectedConfig
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.index.text import print_expr
from scheduler.ir.operations import GroupKind

# Sources kept for each node. The engine offers a hundred and more; the tuner renders what it
# wants to try, and pages show these.
RECORDED = 8


def record_schedule(graph: Graph, scheduled: Scheduled) -> None:
    """Write a graph's template nodes with all their candidates. Part of ``graphs.prepare``."""
    comment = scheduled.backend.comment
    graph_nodes = dict(graph.nodes.values_list("name", "pk"))
    for position, node in enumerate(scheduled.schedule.nodes):
        row = _record_node(graph, position, node, scheduled)
        row.graph_nodes.set(graph_nodes[name] for name in node.nodes if name in graph_nodes)
        if node.kind is not GroupKind.EXTERN:
            _record_candidates(row, node, scheduled, comment)


def _record_node(
    graph: Graph, position: int, node: SchedulerNode, scheduled: Scheduled
) -> TemplateNode:
    extern = next(iter(node.externs), None)
    lowered = scheduled.schedule.lowered
    row = None if extern else _problem(problem.problem_of(node, lowered))
    if row is not None:
        hints = {name: symbol["hint"] for name, symbol in graph.symbols.items()}
        limits.record(row, node, lowered, hints)
    return TemplateNode.objects.create(
        graph=graph,
        problem=row,
        position=position,
        name=node.name,
        kind=node.kind.value,
        op=(extern.op if extern else problem.op_name(node, lowered))[:64],
        group=[print_expr(extent) for extent in node.group],
        reads=list(node.reads),
        writes=list(node.writes),
        frees=list(node.frees),
        extern_reason=extern.reason if extern else "",
    )


def _problem(found: problem.Problem) -> Problem:
    fields = asdict(found) | {"op": found.op[:64], "summary": found.summary[:300]}
    row, _ = Problem.objects.get_or_create(digest=found.digest, defaults=fields)
    return row


def _record_candidates(
    row: TemplateNode, node: SchedulerNode, scheduled: Scheduled, comment: MetadataComment
) -> None:
    """The default first, then others spread over what the engine offers; equal sources once."""
    default = scheduled.backend.default(node)
    offered = scheduled.backend.candidates(node)
    others = {caller.name: caller for caller in offered.callers if caller.name != default.name}
    callers = {default.name: default, **_spread(others, RECORDED - 1)}
    rendered = {name: scheduled.backend.codegen(node, caller) for name, caller in callers.items()}
    rows = _kernels([kernel for kernel, _ in rendered.values()])
    KernelUse.objects.bulk_create(
        KernelUse(
            kernel=rows[kernel.name],
            template_node=row,
            position=position,
            is_default=kernel.name == default.name,
            description=callers[name].description[:300],
            call=_call(call),
            metadata_comment=comment(node, kernel.name),
            line_origins=[asdict(origin) for origin in kernel.line_origins],
        )
        for position, (name, (kernel, call)) in enumerate(rendered.items())
    )
    row.rejected = [rejected_line(config) for config in offered.rejected]
    row.offered = len(others) + 1
    row.save(update_fields=["rejected", "offered"])


def record_candidate(
    row: TemplateNode, position: int, scheduled: Scheduled, caller: TemplateCaller
) -> GeneratedKernel:
    """The row of a candidate that was searched for, with its use by the node."""
    kernel = _kernels([caller.kernel])[caller.name]
    node = scheduled.node(row.name)
    comment = scheduled.backend.comment
    KernelUse.objects.bulk_create(
        [
            KernelUse(
                kernel=kernel,
                template_node=row,
                position=RECORDED + position,
                description=caller.description[:300],
                call=_call(caller.call),
                metadata_comment=comment(node, caller.name),
                line_origins=[asdict(origin) for origin in caller.kernel.line_origins],
            )
        ],
        ignore_conflicts=True,
    )
    return kernel


def _spread(callers: Mapping[str, TemplateCaller], count: int) -> dict[str, TemplateCaller]:
    """At most ``count`` of the callers, evenly over their order: neighbours are much alike."""
    names = list(callers)
    step = max(1.0, len(names) / count)
    places = (int(number * step) for number in range(min(count, len(names))))
    return {names[place]: callers[names[place]] for place in places}


def _kernels(rendered: Sequence[RenderedKernel]) -> dict[str, GeneratedKernel]:
    """The rows of these kernels by name, new or known."""
    GeneratedKernel.objects.bulk_create(
        (_kernel(kernel) for kernel in rendered), ignore_conflicts=True
    )
    names = [kernel.name for kernel in rendered]
    return {row.name: row for row in GeneratedKernel.objects.filter(name__in=names)}


def _kernel(kernel: RenderedKernel) -> GeneratedKernel:
    return GeneratedKernel(
        name=kernel.name,
        source_digest=hashlib.sha256(kernel.source.encode()).hexdigest(),
        template=kernel.template,
        config=dict(kernel.config),
        source=kernel.source,
        source_file=kernel.source_file,
        args=[asdict(arg) for arg in kernel.args],
        launches=[
            {**asdict(launch), "grid": [print_expr(extent) for extent in launch.grid]}
            for launch in kernel.launches
        ],
        workspace_bytes=print_expr(kernel.workspace_bytes)[:500],
    )


def _call(call: KernelCall) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else print_expr(value)
        for name, value in call.args.items()
    }


def rejected_line(config: RejectedConfig) -> dict[str, Any]:
    """As a node keeps it, and a run's ledger."""
    return {
        "template": config.template,
        "config": dict(config.config),
        "stage": config.rejected.stage.value,
        "reason": config.rejected.reason,
        "detail": config.rejected.detail,
    }
