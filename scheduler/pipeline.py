"""The order of the passes: from a model's file to kernels and their builds.

``tuning/run.py`` selects the candidates; its decisions are a ``Chooser`` here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from scheduler.build.cache import CodeCache
from scheduler.build.flags import DEFAULT_FLAGS, Flags
from scheduler.build.model import Build
from scheduler.build.parallel import BuildProgress, BuildRequest, build_all
from scheduler.build.toolchains import ToolchainFor
from scheduler.bundle.manifest import (
    ChosenBy,
    ExternEntry,
    LoopEntry,
    Manifest,
    TimeSource,
    loop_entry,
)
from scheduler.bundle.writer import manifest_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import CallVariant, Choice, ChoiceSource, KernelCall, RenderedKernel
from scheduler.codegen.program import Position
from scheduler.codegen.scheduling import BaseScheduling, scheduling_for
from scheduler.cpu_count import usable_cpus
from scheduler.errors import Rejected
from scheduler.frontends import pt2
from scheduler.fusion import schedule as make_schedule
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.graph import Graph, MatmulPrecision
from scheduler.ir.operations import GroupKind, LoopEnd, Lowered
from scheduler.ir.serialize import with_digest
from scheduler.lowering import lower as lower_graph
from scheduler.sandbox.process import Cancellation
from scheduler.targets import Target


@dataclass(frozen=True)
class NotGenerated:
    """The name of a selected kernel that the generator no longer generates."""

    kernel: str


Chooser: TypeAlias = Callable[[SchedulerNode], TemplateCaller | NotGenerated | None]
"""Returns a node's selected candidate; None and ``NotGenerated``: the template's default."""

Bucket: TypeAlias = tuple[str, int, Chooser]
"""A symbolic size, its largest value, and the candidates selected up to that value."""


@dataclass(frozen=True)
class GeneratedCode:
    """All code of a schedule, before compilation.

    ``calls`` are in execution order, ``chosen`` maps each scheduler node to its candidate, and
    ``chosen_by`` names the source of the times that the selection is based on.
    """

    schedule: Schedule
    targets: tuple[Target, ...]
    kernels: tuple[RenderedKernel, ...]
    calls: tuple[KernelCall, ...]
    externs: tuple[ExternEntry, ...]
    chosen: Mapping[str, TemplateCaller]
    chosen_by: ChosenBy | None = None
    loops: tuple[LoopEntry, ...] = ()

    def manifest(self) -> Manifest:
        """The bundle's manifest."""
        names = tuple(target.name for target in self.targets)
        return manifest_of(
            *(self.schedule, names, self.kernels, self.calls, self.externs, self.chosen_by),
            loops=self.loops,
        )


def load(path: Path, name: str | None = None, model_name: str = "") -> Graph:
    """Read the model ``model_name`` from a file. Raises ``UserError`` naming the malformed part."""
    return pt2.read(path, name, model_name)


def with_hints(graph: Graph, hints: Mapping[str, int]) -> Graph:
    """Return the graph with ``hints`` as its symbols' hints, which select the configurations."""
    symbols = {
        name: replace(symbol, hint=hints.get(name, symbol.hint))
        for name, symbol in graph.symbols.items()
    }
    return replace(graph, symbols=symbols)


def with_precision(graph: Graph, precision: MatmulPrecision) -> Graph:
    """Return the graph with this precision of its f32 matrix products.

    A changed precision changes the digest, so that the two graphs share no results.
    """
    if precision is graph.float32_matmul_precision:
        return graph
    return with_digest(replace(graph, float32_matmul_precision=precision))


def lower(graph: Graph) -> Lowered:
    """Lower a graph to operations over buffers, and verify them."""
    return lower_graph(graph)


def schedule(lowered: Lowered, *, fuse: bool = True) -> Schedule:
    """Group operations into kernels in execution order, and verify the schedule."""
    return make_schedule(lowered, fuse=fuse)


def scheduling(
    plan: Schedule, targets: Sequence[Target], *, any_language: bool = False
) -> BaseScheduling:
    """Return the backend for a schedule.

    ``any_language``: its defaults are in the language that is assumed to be faster. Raises
    ``UserError`` for targets that cannot share sources.
    """
    return scheduling_for(plan, targets, any_language=any_language)


def generate(
    plan: Schedule,
    targets: Sequence[Target],
    choose: Chooser | None = None,
    buckets: Sequence[Bucket] = (),
    chosen_by: ChosenBy | None = None,
    *,
    any_language: bool = False,
) -> GeneratedCode:
    """Render the kernel of every scheduler node: the selected candidate, else the default.

    ``buckets``, smallest first, add the kernels for smaller sizes if they differ. ``chosen_by``
    names the source of the times that ``choose`` uses. ``any_language``: see :func:`scheduling`.
    """
    backend = scheduling(plan, targets, any_language=any_language)
    calls: list[KernelCall] = []
    externs: list[ExternEntry] = []
    chosen: dict[str, TemplateCaller] = {}
    loop_begins: dict[str, Position] = {}
    loops: dict[str, LoopEntry] = {}
    for node in plan.nodes:
        if node.kind is GroupKind.LOOP:
            marker, position = node.members[0], (len(calls), len(externs))
            if isinstance(marker, LoopEnd):
                name = marker.begin.name
                loops[name] = loop_entry(marker, loop_begins[name], position)
            else:
                loop_begins[marker.name] = position
            continue
        if node.kind is GroupKind.EXTERN:
            for extern in node.externs:
                inputs = plan.lowered.whole_inputs(extern)
                extern_fields = (extern.node, extern.op, extern.reason, len(calls))
                externs.append(ExternEntry(*extern_fields, extern.outputs, inputs))
            continue
        chosen[node.name], choice = _choose_kernel(backend, node, choose, chosen_by)
        call = replace(backend.codegen(node, chosen[node.name])[1], choice=choice)
        calls.append(replace(call, variants=_variants(backend, node, call, buckets, chosen_by)))
    return GeneratedCode(
        *(plan, tuple(targets), backend.kernels, tuple(calls), tuple(externs), chosen, chosen_by),
        loops=tuple(loops[name] for name in loop_begins),
    )


def _choose_kernel(
    backend: BaseScheduling,
    node: SchedulerNode,
    choose: Chooser | None,
    chosen_by: ChosenBy | None,
) -> tuple[TemplateCaller, Choice | None]:
    """Return the candidate for a node and why it was selected; the default without a chooser."""
    if choose is None:
        return backend.default(node), None
    selection = choose(node)
    if isinstance(selection, TemplateCaller):
        is_modelled = chosen_by is not None and chosen_by.times is TimeSource.MODELLED
        return selection, Choice(ChoiceSource.MODELLED if is_modelled else ChoiceSource.SELECTED)
    missing_kernel = selection.kernel if selection is not None else ""
    return backend.default(node), Choice(ChoiceSource.DEFAULT, missing_kernel)


def _variants(
    backend: BaseScheduling,
    node: SchedulerNode,
    call: KernelCall,
    buckets: Sequence[Bucket],
    chosen_by: ChosenBy | None,
) -> tuple[CallVariant, ...]:
    """Return the calls at smaller sizes; none if one kernel is used at all sizes.

    Adjacent buckets with the same kernel are merged into the larger one, unless the selected
    kernel of the smaller one is no longer generated.
    """
    variants: list[CallVariant] = []
    for symbol, max_size, choose in buckets:
        caller, choice = _choose_kernel(backend, node, choose, chosen_by)
        variant = backend.codegen(node, caller)[1]
        if variants and _is_redundant(variants[-1], variant.kernel):
            variants.pop()
        variants.append(CallVariant(symbol, max_size, variant.kernel, variant.args, choice))
    if variants and _is_redundant(variants[-1], call.kernel):
        variants.pop()
    return tuple(variants)


def _is_redundant(variant: CallVariant, larger: str) -> bool:
    """Whether the next larger sizes use the same kernel."""
    return variant.kernel == larger and not (variant.choice and variant.choice.not_made)


def build_kernels(
    kernels: Sequence[RenderedKernel],
    targets: Sequence[Target],
    toolchain_for: ToolchainFor,
    cache: CodeCache,
    *,
    flags: Flags = DEFAULT_FLAGS,
    workers: int | None = None,
    on_progress: Callable[[BuildProgress], None] | None = None,
    cancellation: Cancellation | None = None,
) -> dict[tuple[str, str], Build | Rejected]:
    """Build every kernel for every target in parallel; results by (kernel, target)."""
    pairs = [(kernel, target) for kernel in kernels for target in targets]
    requests = [
        BuildRequest(
            *(kernel.source, kernel.symbol, target),
            toolchain_for(target, kernel.source_file),
            flags,
            kernel.source_file,
        )
        for kernel, target in pairs
    ]
    results = build_all(requests, cache, workers or usable_cpus(), on_progress, cancellation)
    keys = [(kernel.name, target.name) for kernel, target in pairs]
    return dict(zip(keys, results, strict=True))
