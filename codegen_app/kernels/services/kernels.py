"""Recording the engine's output: scheduled nodes, their problems, and the rendered candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.kernels.models import GeneratedKernel, KernelUse
from codegen_app.kernels.services import problem_work
from codegen_app.kernels.services.engine import Scheduled
from scheduler.agent.version import generator
from scheduler.codegen import problem
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import ConfigValue, KernelCall, RenderedKernel
from scheduler.codegen.scheduling import BaseScheduling, RejectedConfig
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.index.text import print_expr
from scheduler.ir.operations import END_SUFFIX, LoopBegin, LoopEnd

# Sources stored per node. The engine has a hundred candidates and more; the tuner renders what it
# tries, and pages show these.
MAX_RECORDED = 8
_BATCH = 500  # rows per statement
_NODE_BATCH = 50  # nodes per statement of kernels: sources are long


@dataclass(frozen=True)
class NodeCandidates:
    """A node's candidates: the recorded kernels with their calls, and the number of all candidates
    whose one source runs on every target. ``legal`` counts the configurations that are legal on
    each target by itself, ``rejected`` has the others with the targets that reject each."""

    callers: tuple[TemplateCaller, ...]  # the default first
    configs: tuple[Mapping[str, ConfigValue], ...]
    offered: int
    legal: Mapping[str, int]
    rejected: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class PreparedNode:
    """A scheduled node with its problem and candidates, both None if the node has no kernel."""

    node: SchedulerNode
    problem: problem.Problem | None
    offer: NodeCandidates | None


def prepare(scheduled: Scheduled, targets: Sequence[str]) -> list[PreparedNode]:
    """Return every node with its problem and candidates, and the legality of its configurations on
    each of these targets. This is the long part: nothing is written.

    Nodes of one problem share their candidates; configurations are tried for the first node alone.
    """
    offers: dict[str, NodeCandidates] = {}
    alone = {target: scheduled.scheduling_for(target) for target in targets}
    prepared: list[PreparedNode] = []
    for node in scheduled.schedule.nodes:
        if not node.kind.has_kernel:
            prepared.append(PreparedNode(node, None, None))
            continue
        found = problem.problem_of(node, scheduled.schedule.lowered)
        known = offers.get(found.digest)
        offer = (
            _node_candidates(node, scheduled, alone)
            if known is None
            else _reuse_candidates(node, known, scheduled)
        )
        offers[found.digest] = offer
        prepared.append(PreparedNode(node, found, offer))
    return prepared


def _node_candidates(
    node: SchedulerNode, scheduled: Scheduled, alone: Mapping[str, BaseScheduling]
) -> NodeCandidates:
    """Return the default first, then others spread over the engine's candidates; equal sources
    once."""
    default = scheduled.backend.default(node)
    offered = scheduled.backend.candidates(node)
    others = {caller.name: caller for caller in offered.callers if caller.name != default.name}
    callers = (default, *spread(others, MAX_RECORDED - 1).values())
    legality = {target: backend.legality(node) for target, backend in alone.items()}
    return NodeCandidates(
        callers,
        tuple(caller.kernel.config for caller in callers),
        len(others) + 1,
        {target: one.legal for target, one in legality.items()},
        _rejected_lines({target: one.rejected for target, one in legality.items()}),
    )


def _rejected_lines(rejected: Mapping[str, Sequence[RejectedConfig]]) -> list[dict[str, Any]]:
    """Return the rejections of each target; targets with the same rejection share a line."""
    lines: dict[RejectedConfig, dict[str, Any]] = {}
    for target, configs in rejected.items():
        for config in configs:
            line = lines.setdefault(config, rejected_line(config) | {"targets": []})
            line["targets"].append(target)
    return list(lines.values())


def _reuse_candidates(
    node: SchedulerNode, known: NodeCandidates, scheduled: Scheduled
) -> NodeCandidates:
    """Return the same kernels for another node of the problem, with that node's calls."""
    template = scheduled.backend.template(node)
    callers = tuple(template.generate(dict(config)) for config in known.configs)
    return replace(known, callers=callers)


def record_schedule(graph: Graph, scheduled: Scheduled, prepared: Sequence[PreparedNode]) -> None:
    """Record a graph's template nodes with their candidates. Part of ``graphs.prepare``."""
    problems = _problems(graph, scheduled, prepared)
    rows = TemplateNode.objects.bulk_create(
        (_node(graph, position, one, scheduled, problems) for position, one in enumerate(prepared)),
        batch_size=_BATCH,
    )
    graph_nodes = dict(graph.nodes.values_list("name", "pk"))
    through = TemplateNode.graph_nodes.through
    through.objects.bulk_create(
        (
            through(templatenode_id=row.pk, graphnode_id=graph_nodes[name])
            for row, one in zip(rows, prepared, strict=True)
            for name in one.node.nodes
            if name in graph_nodes
        ),
        batch_size=_BATCH,
    )
    pairs = list(zip(rows, prepared, strict=True))
    kernels: dict[str, int] = {}
    for start in range(0, len(pairs), _NODE_BATCH):
        _record_candidates(pairs[start : start + _NODE_BATCH], scheduled, kernels)


def _problems(
    graph: Graph, scheduled: Scheduled, prepared: Sequence[PreparedNode]
) -> Mapping[str, Problem]:
    """Return the rows of the problems by digest, each with its work at the graph's own sizes."""
    first = {one.problem.digest: one for one in reversed(prepared) if one.problem is not None}
    found = [one.problem for one in first.values() if one.problem is not None]
    Problem.objects.bulk_create(
        (
            Problem(**asdict(each) | {"op": each.op[:64], "summary": each.summary[:300]})
            for each in found
        ),
        ignore_conflicts=True,
        batch_size=_BATCH,
    )
    rows: dict[str, Problem] = {}
    for start in range(0, len(found), _BATCH):
        digests = [each.digest for each in found[start : start + _BATCH]]
        rows |= {row.digest: row for row in Problem.objects.filter(digest__in=digests)}
    hints = {name: symbol["hint"] for name, symbol in graph.symbols.items()}
    lowered = scheduled.schedule.lowered
    problem_work.record_all(
        [(rows[digest], one.node) for digest, one in first.items()], lowered, hints
    )
    return rows


def _node(
    graph: Graph,
    position: int,
    one: PreparedNode,
    scheduled: Scheduled,
    problems: Mapping[str, Problem],
) -> TemplateNode:
    node = one.node
    without = _without_kernel(node, scheduled.schedule)
    op = without[0] if without else problem.op_name(node, scheduled.schedule.lowered)
    return TemplateNode(
        graph=graph,
        problem=problems[one.problem.digest] if one.problem else None,
        position=position,
        name=node.name,
        kind=node.kind.value,
        op=op[:64],
        group=[print_expr(extent) for extent in node.group],
        reads=list(node.reads),
        writes=list(node.writes),
        frees=list(node.frees),
        extern_reason=without[1] if without else "",
        rejected=one.offer.rejected if one.offer else [],
        legal=one.offer.legal if one.offer else {},
        offered=one.offer.offered if one.offer else 0,
    )


def _without_kernel(node: SchedulerNode, schedule: Schedule) -> tuple[str, str] | None:
    """Return the op of a node without kernel, and its description; None for all other nodes."""
    for extern in node.externs:
        return extern.op, extern.reason
    mark = node.members[0]
    if isinstance(mark, LoopBegin):
        return mark.op, _loop_line(mark, schedule)
    if isinstance(mark, LoopEnd):
        return mark.begin.op, f"The loop that {mark.begin.name} begins ends here."
    return None


def _loop_line(mark: LoopBegin, schedule: Schedule) -> str:
    names = [node.name for node in schedule.nodes]
    body = schedule.nodes[names.index(mark.name) + 1 : names.index(mark.name + END_SUFFIX)]
    count = sum(node.kind.has_kernel for node in body)
    kernels = "The kernel" if count == 1 else f"The {count} kernels"
    runs = f"{kernels} from here to {mark.name}{END_SUFFIX} run{'s' * (count == 1)} once a step"
    if mark.steps is None:
        return f"{runs}, as long as the model's condition holds, which is computed in each step."
    return f"{runs}: {print_expr(mark.steps)} times."


def _record_candidates(
    pairs: Sequence[tuple[TemplateNode, PreparedNode]],
    scheduled: Scheduled,
    kernels: dict[str, int],
) -> None:
    """Record the candidates of some nodes. ``kernels`` are the rows known so far, by name."""
    backend = scheduled.backend
    callers = [
        (row, one.node, position, caller)
        for row, one in pairs
        if one.offer is not None
        for position, caller in enumerate(one.offer.callers)
    ]
    rendered = [backend.codegen(node, caller) for _, node, _, caller in callers]
    new = {kernel.name: kernel for kernel, _ in rendered if kernel.name not in kernels}
    kernels |= {name: row.pk for name, row in _kernels(list(new.values())).items()}
    KernelUse.objects.bulk_create(
        KernelUse(
            kernel_id=kernels[kernel.name],
            template_node=row,
            position=position,
            is_default=position == 0,
            description=caller.description[:300],
            call=_call(call),
            metadata_comment=backend.comment(node, kernel.name),
            line_origins=[asdict(origin) for origin in kernel.line_origins],
            generator=generator(),
        )
        for (row, node, position, caller), (kernel, call) in zip(callers, rendered, strict=True)
    )


def record_candidate(
    row: TemplateNode,
    position: int,
    scheduled: Scheduled,
    caller: TemplateCaller,
    backend: BaseScheduling,
) -> GeneratedKernel:
    """Return the row of a searched candidate of this backend, and record that the node uses it."""
    kernel = _kernels([caller.kernel])[caller.name]
    node = scheduled.node(row.name)
    comment = backend.owner(caller.kernel.source_file).comment
    KernelUse.objects.bulk_create(
        [
            KernelUse(
                kernel=kernel,
                template_node=row,
                position=MAX_RECORDED + position,
                description=caller.description[:300],
                call=_call(caller.call),
                metadata_comment=comment(node, caller.name),
                line_origins=[asdict(origin) for origin in caller.kernel.line_origins],
            )
        ],
        ignore_conflicts=True,
    )
    KernelUse.objects.filter(kernel=kernel, template_node=row).update(generator=generator())
    return kernel


def spread(callers: Mapping[str, TemplateCaller], count: int) -> dict[str, TemplateCaller]:
    """Return at most ``count`` callers, evenly over their order: neighbours are much alike."""
    names = list(callers)
    step = max(1.0, len(names) / count)
    places = (int(number * step) for number in range(min(count, len(names))))
    return {names[place]: callers[names[place]] for place in places}


def _kernels(rendered: Sequence[RenderedKernel]) -> dict[str, GeneratedKernel]:
    """Return the rows of these kernels by name, new or known."""
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
    """Return the rejection as a node and a run's ledger store it."""
    return {
        "template": config.template,
        "config": dict(config.config),
        "stage": config.rejected.stage.value,
        "reason": config.rejected.reason,
        "detail": config.rejected.detail,
    }
