"""Turns a schedule into tuning problems: the calls of kernels, and the candidates for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from scheduler.codegen.benchmark_request import BenchmarkRequest, TensorArg
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.problem import Problem, ProblemShape, problem_of
from scheduler.codegen.scheduling import BaseScheduling, RejectedConfig
from scheduler.codegen.title import title
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.dtypes import DType
from scheduler.targets import Target
from scheduler.tuning.ledger import Operand
from scheduler.tuning.space import TEMPLATE
from scheduler.tuning.work import Work, work_of


@dataclass(frozen=True)
class TuningProblem:
    """One call of a kernel at concrete sizes, and all candidates for it.

    ``nodes`` are the scheduler nodes with this problem (the layers of a model repeat it), ``node``
    the first of them. ``callers`` begin with the default.
    """

    identity: Problem
    node: SchedulerNode
    nodes: tuple[str, ...]
    bindings: Mapping[str, int]
    callers: tuple[TemplateCaller, ...]
    rejected: tuple[RejectedConfig, ...]
    request: BenchmarkRequest = field(repr=False)
    work: Work
    title: str  # for display: ``addmm(16x768, 768x2304) f16``, at its sizes; sizes that
    # differ from the example's are named: ``… at s70=16``

    @property
    def key(self) -> str:
        """The problem's identity at its sizes."""
        return self.identity.key(self.bindings)

    @property
    def name(self) -> str:
        """The first node's name and the sizes: unique in a run."""
        return f"{self.node.name} {format_bindings(self.bindings)}".strip()

    @property
    def configs(self) -> tuple[Mapping[str, ConfigValue], ...]:
        """The configurations to search. If there are several templates, each configuration names
        its own, since parameters of one name may mean different things in two templates."""
        pairs = [_template_config(caller) for caller in self.callers]
        if len({template for template, _ in pairs}) == 1:
            return tuple(config for _, config in pairs)
        return tuple({TEMPLATE: template, **config} for template, config in pairs)

    @property
    def tensors(self) -> tuple[TensorArg, ...]:
        return tuple(arg for arg in self.request.args if isinstance(arg, TensorArg))

    def restrict_to(self, kernels: Collection[str]) -> TuningProblem | None:
        """Return the problem with only the named candidates; None if none is offered."""
        callers = tuple(caller for caller in self.callers if caller.name in kernels)
        return replace(self, callers=callers, rejected=()) if callers else None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The inputs, as the autotune log shows them."""
        return tuple(
            Operand(DType.from_label(arg.dtype).torch, arg.size, arg.stride)
            for arg in self.tensors
            if not arg.is_output
        )

    @property
    def shape(self) -> ProblemShape:
        """What makes it comparable with problems tuned before."""
        return self.call.shape

    @property
    def call(self) -> ProblemCall:
        """The call on its own."""
        return ProblemCall(self.title, self.tensors, self.callers[0].kernel.template)


@dataclass(frozen=True)
class ProblemCall:
    """A call as users know it, whatever kernels serve it: its title and its tensors."""

    title: str
    tensors: tuple[TensorArg, ...]
    template: str  # the template of the default

    @property
    def shape(self) -> ProblemShape:
        """What makes it comparable with calls of other problems."""
        extents = tuple(size for arg in self.tensors for size in arg.size)
        return ProblemShape(self.template, tuple(arg.dtype for arg in self.tensors), extents)


def call_of(
    node: SchedulerNode,
    schedule: Schedule,
    default: TemplateCaller,
    target: Target,
    bindings: Bindings,
) -> ProblemCall:
    """Return a node's call at these sizes. Raises ``UserError`` for sizes that nothing holds."""
    request = default.benchmark_request(target.name, bindings)
    tensors = tuple(arg for arg in request.args if isinstance(arg, TensorArg))
    return ProblemCall(_title(node, schedule, bindings), tensors, default.kernel.template)


def _title(node: SchedulerNode, schedule: Schedule, bindings: Bindings) -> str:
    symbols = schedule.lowered.graph.symbols
    other_sizes = {name: size for name, size in bindings.items() if size != symbols[name].hint}
    suffix = f" at {format_bindings(other_sizes)}" if other_sizes else ""
    return title(node, schedule.lowered, bindings) + suffix


def _template_config(caller: TemplateCaller) -> tuple[str, dict[str, ConfigValue]]:
    """Return the template and the configuration of a candidate."""
    return caller.kernel.template, dict(caller.kernel.config)


def find_problems(
    schedule: Schedule,
    backend: BaseScheduling,
    target: Target,
    bindings: Bindings,
    only: Collection[str] = (),
    shared: BaseScheduling | None = None,
) -> tuple[TuningProblem, ...]:
    """Return the problems of a schedule at these sizes, those with the least work first.

    ``only`` names scheduler nodes or the graph nodes that they compute. ``shared`` makes the
    untuned default if more targets than ``backend``'s use it. Raises ``UserError`` for a name that
    no kernel has.
    """
    nodes = [node for node in schedule.nodes if node.kind.has_kernel]
    if only:
        nodes = [node for node in nodes if node.name in only or set(node.nodes) & set(only)]
        selected_names = {name for node in nodes for name in (node.name, *node.nodes)}
        for name in only:
            if name not in selected_names:
                raise UserError(
                    f"{name}: no such kernel; `python -m scheduler lower` lists the kernels"
                )
    groups: dict[Problem, list[SchedulerNode]] = {}
    for node in nodes:
        groups.setdefault(problem_of(node, schedule.lowered), []).append(node)
    problems = []
    for identity, (first, *repeats) in groups.items():
        default, offered = (shared or backend).default(first), backend.candidates(first)
        config = _template_config(default)
        problems.append(
            TuningProblem(
                identity=identity,
                node=first,
                nodes=tuple(node.name for node in (first, *repeats)),
                bindings=dict(bindings),
                callers=(
                    default,
                    *(caller for caller in offered.callers if _template_config(caller) != config),
                ),
                rejected=offered.rejected,
                request=default.benchmark_request(target.name, bindings),
                work=work_of(first, schedule.lowered, bindings),
                title=_title(first, schedule, bindings),
            )
        )
    return tuple(
        sorted(
            problems,
            key=lambda problem: (problem.work.matrix_flops, problem.work.bytes, problem.name),
        )
    )
