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
from scheduler.agent.version import generator_digest
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
        node_problem = problem.problem_of(node, scheduled.schedule.lowered)
        if shared := offers.get(node_problem.digest):  # the same kernels, with this node's calls
            template = scheduled.backend.template(node)
            callers = tuple(template.generate(dict(config)) for config in shared.configs)
            offer = replace(shared, callers=callers)
        else:
            # The default first, then others spread over the engine's; equal sources once.
            default = scheduled.backend.default(node)
            others = {
                caller.name: caller
                for caller in scheduled.backend.candidates(node).callers
                if caller.name != default.name
            }
            callers = (default, *spread(others, MAX_RECORDED - 1).values())
            legality = {target: backend.legality(node) for target, backend in alone.items()}
            # Targets with the same rejection share a line.
            rejected: dict[RejectedConfig, dict[str, Any]] = {}
            for target, result in legality.items():
                for config in result.rejected:
                    line = rejected.setdefault(config, rejected_line(config) | {"targets": []})
                    line["targets"].append(target)
            offer = offers[node_problem.digest] = NodeCandidates(
                callers,
                tuple(caller.kernel.config for caller in callers),
                len(others) + 1,
                {target: result.legal for target, result in legality.items()},
                list(rejected.values()),
            )
        prepared.append(PreparedNode(node, node_problem, offer))
    return prepared


def record_schedule(graph: Graph, scheduled: Scheduled, prepared: Sequence[PreparedNode]) -> None:
    """Record a graph's template nodes with their candidates. Part of ``graphs.prepare``."""
    problems = _problems(graph, scheduled, prepared)
    nodes = []
    for position, each in enumerate(prepared):
        node, offer = each.node, each.offer
        without_kernel = _without_kernel(node, scheduled.schedule)
        op, reason = without_kernel or (problem.op_name(node, scheduled.schedule.lowered), "")
        nodes.append(
            TemplateNode(
                graph=graph,
                problem=problems[each.problem.digest] if each.problem else None,
                position=position,
                name=node.name,
                kind=node.kind.value,
                op=op[:64],
                group=[print_expr(extent) for extent in node.group],
                reads=list(node.reads),
                writes=list(node.writes),
                frees=list(node.frees),
                extern_reason=reason,
                rejected=offer.rejected if offer else [],
                legal=offer.legal if offer else {},
                offered=offer.offered if offer else 0,
            )
        )
    rows = TemplateNode.objects.bulk_create(nodes, batch_size=_BATCH)
    pairs = list(zip(rows, prepared, strict=True))
    graph_nodes = dict(graph.nodes.values_list("name", "pk"))
    through = TemplateNode.graph_nodes.through
    through.objects.bulk_create(
        (
            through(templatenode_id=row.pk, graphnode_id=graph_nodes[name])
            for row, each in pairs
            for name in each.node.nodes
            if name in graph_nodes
        ),
        batch_size=_BATCH,
    )
    kernels: dict[str, int] = {}
    for start in range(0, len(pairs), _NODE_BATCH):
        _record_candidates(pairs[start : start + _NODE_BATCH], scheduled, kernels)


def _problems(
    graph: Graph, scheduled: Scheduled, prepared: Sequence[PreparedNode]
) -> Mapping[str, Problem]:
    """Return the rows of the problems by digest, each with its work at the graph's own sizes."""
    first = {each.problem.digest: each for each in reversed(prepared) if each.problem is not None}
    Problem.objects.bulk_create(
        (
            Problem(
                **asdict(each.problem)
                | {"op": each.problem.op[:64], "summary": each.problem.summary[:300]}
            )
            for each in first.values()
            if each.problem is not None
        ),
        ignore_conflicts=True,
        batch_size=_BATCH,
    )
    rows: dict[str, Problem] = {}
    for start in range(0, len(first), _BATCH):
        digests = list(first)[start : start + _BATCH]
        rows |= {row.digest: row for row in Problem.objects.filter(digest__in=digests)}
    hints = {name: symbol["hint"] for name, symbol in graph.symbols.items()}
    lowered = scheduled.schedule.lowered
    problem_work.record_all(
        [(rows[digest], each.node) for digest, each in first.items()], lowered, hints
    )
    return rows


def _without_kernel(node: SchedulerNode, schedule: Schedule) -> tuple[str, str] | None:
    """Return the op of a node without kernel, and its description; None for all other nodes."""
    for extern in node.externs:
        return extern.op, extern.reason
    mark = node.members[0]
    if isinstance(mark, LoopEnd):
        return mark.begin.op, f"The loop that {mark.begin.name} begins ends here."
    if not isinstance(mark, LoopBegin):
        return None
    names = [node.name for node in schedule.nodes]
    body = schedule.nodes[names.index(mark.name) + 1 : names.index(mark.name + END_SUFFIX)]
    count = sum(node.kind.has_kernel for node in body)
    kernels = "The kernel" if count == 1 else f"The {count} kernels"
    runs = f"{kernels} from here to {mark.name}{END_SUFFIX} run{'s' * (count == 1)} once a step"
    if mark.steps is None:
        runs += ", as long as the model's condition holds, which is computed in each step."
    else:
        runs += f": {print_expr(mark.steps)} times."
    return mark.op, runs


def _record_candidates(
    pairs: Sequence[tuple[TemplateNode, PreparedNode]],
    scheduled: Scheduled,
    kernels: dict[str, int],
) -> None:
    """Record the candidates of some nodes. ``kernels`` are the rows known so far, by name."""
    backend = scheduled.backend
    callers = [
        (row, each.node, position, caller)
        for row, each in pairs
        if each.offer is not None
        for position, caller in enumerate(each.offer.callers)
    ]
    rendered = [backend.codegen(node, caller) for _, node, _, caller in callers]
    new = {kernel.name: kernel for kernel, _ in rendered if kernel.name not in kernels}
    kernels |= {name: row.pk for name, row in _kernels(list(new.values())).items()}
    KernelUse.objects.bulk_create(
        _kernel_use(
            kernel,
            call,
            kernel_id=kernels[kernel.name],
            template_node=row,
            position=position,
            is_default=position == 0,
            description=caller.description[:300],
            metadata_comment=backend.comment(node, kernel.name),
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
    comment = backend.owner(caller.kernel.source_file).comment
    use = _kernel_use(
        caller.kernel,
        caller.call,
        kernel=kernel,
        template_node=row,
        position=MAX_RECORDED + position,
        description=caller.description[:300],
        metadata_comment=comment(scheduled.node(row.name), caller.name),
    )
    KernelUse.objects.bulk_create([use], ignore_conflicts=True)
    KernelUse.objects.filter(kernel=kernel, template_node=row).update(generator=use.generator)
    return kernel


def _kernel_use(rendered: RenderedKernel, call: KernelCall, **fields: Any) -> KernelUse:
    return KernelUse(
        call={
            name: value if isinstance(value, str) else print_expr(value)
            for name, value in call.args.items()
        },
        line_origins=[asdict(origin) for origin in rendered.line_origins],
        generator=generator_digest(),
        **fields,
    )


def spread(callers: Mapping[str, TemplateCaller], count: int) -> dict[str, TemplateCaller]:
    """Return at most ``count`` callers, evenly over their order: neighbours are much alike."""
    names = list(callers)
    step = max(1.0, len(names) / count)
    places = (int(number * step) for number in range(min(count, len(names))))
    return {names[place]: callers[names[place]] for place in places}


def _kernels(rendered: Sequence[RenderedKernel]) -> dict[str, GeneratedKernel]:
    """Return the rows of these kernels by name, new or known."""
    GeneratedKernel.objects.bulk_create(
        (
            GeneratedKernel(
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
            for kernel in rendered
        ),
        ignore_conflicts=True,
    )
    names = [kernel.name for kernel in rendered]
    return {row.name: row for row in GeneratedKernel.objects.filter(name__in=names)}


def rejected_line(config: RejectedConfig) -> dict[str, Any]:
    """Return the rejection as a node and a run's ledger store it."""
    return {
        "template": config.template,
        "config": dict(config.config),
        "stage": config.rejected.stage.value,
        "reason": config.rejected.reason,
        "detail": config.rejected.detail,
    }
