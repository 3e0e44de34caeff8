"""The scheduling shared by all backends: the interface between scheduled nodes and renderers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.codegen.languages import language_of
from scheduler.codegen.template import Config, KernelTemplate, alternative_hint
from scheduler.errors import Rejected, Stage, UserError
from scheduler.fuel import LimitError, fuel_limit
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import GroupKind
from scheduler.limits import RENDERING_FUEL
from scheduler.targets import Target
from scheduler.targets.registry import backend_of, backends, load_part, targets_of

TemplateTable: TypeAlias = Mapping[GroupKind, type[KernelTemplate]]


@dataclass(frozen=True)
class RejectedConfig:
    """A configuration that is invalid for a node, and why (``rejected.stage`` says where)."""

    template: str
    config: tuple[tuple[str, int | str | bool], ...]
    rejected: Rejected


@dataclass(frozen=True)
class Candidates:
    """All valid candidates of a node, and all rejected ones: nothing is dropped silently."""

    callers: tuple[TemplateCaller, ...]
    rejected: tuple[RejectedConfig, ...]


@dataclass(frozen=True)
class Legality:
    """The number of valid configurations of a node, and the invalid ones."""

    legal: int
    rejected: tuple[RejectedConfig, ...]


class BaseScheduling(ABC):
    """A backend for one schedule and the targets that its kernels must support: nodes become
    candidates, the selected ones become kernels and calls."""

    source_file: ClassVar[str]
    """File name of a kernel's source."""

    comment_mark: ClassVar[str] = "//"
    """Start of a comment in a kernel's source."""

    alternative: ClassVar[str] = ""
    """What makes kernels for the nodes that it does not support; "" if nothing does."""

    @classmethod
    def obstacle(cls, target: Target) -> str:  # noqa: ARG003 - most support all
        """Return why the scheduling's kernels do not support a target of its backends, or ""."""
        return ""

    def __init__(
        self,
        schedule: Schedule,
        targets: tuple[Target, ...],
        templates: TemplateTable | None = None,
    ) -> None:
        if not targets:
            raise ValueError("a schedule needs at least one target")
        self.schedule = schedule
        self.targets = targets
        self.comment = MetadataComment(schedule.lowered, self.source_file, self.comment_mark)
        self._table = self.templates() if templates is None else templates
        self._templates: dict[str, KernelTemplate] = {}
        self._kernels: dict[str, RenderedKernel] = {}

    @abstractmethod
    def templates(self) -> TemplateTable:
        """Return the template for each kind of group."""

    @property
    def kernels(self) -> tuple[RenderedKernel, ...]:
        """Return every kernel defined so far, in order of first use."""
        return tuple(self._kernels.values())

    def template(self, node: SchedulerNode) -> KernelTemplate:
        """Return the template applied to the node. Raises ``UserError`` if the backend has none for
        it or does not support one of the targets."""
        if node.name not in self._templates:
            if not self.serves(node):
                hint = alternative_hint(self.alternative)
                raise UserError(f"{node.name}: {self._unsupported_reason(node)}{hint}")
            template = self._table[node.kind]
            self._templates[node.name] = template(
                node, self.schedule.lowered, self.targets, self.comment
            )
        return self._templates[node.name]

    @property
    def members(self) -> tuple[BaseScheduling, ...]:
        """Return the single-language schedulings that make up this one."""
        return (self,)

    def serves(self, node: SchedulerNode) -> bool:
        """Whether the targets have a template for such a node."""
        return not self._unsupported_reason(node)

    def _unsupported_reason(self, node: SchedulerNode) -> str:
        """Return why the targets have no template for such a node, or "" if they have one."""
        if obstacle := next(filter(None, map(self.obstacle, self.targets)), ""):
            return obstacle
        if node.kind in self._table:
            return ""
        names = ", ".join(target.name for target in self.targets)
        return f"no {node.kind} kernels in {language_of(self.source_file)} are supported on {names}"

    def owner(self, source_file: str) -> BaseScheduling:
        """Return the scheduling whose kernels have that source file name: this one, or one that
        competes with it. Raises ``ValueError`` if there is none."""
        if source_file != self.source_file:
            raise ValueError(f"no scheduling generates {source_file}")
        return self

    def candidates(self, node: SchedulerNode) -> Candidates:
        """Return every configuration for the node, rendered, and the rejected ones."""
        with _node_fuel(node):
            template = self.template(node)
            legal, rejected = _sort_configs(template)
            return Candidates(tuple(map(template.generate, legal)), rejected)

    def legality(self, node: SchedulerNode) -> Legality:
        """Return the configurations that ``candidates`` would offer and reject by its rules;
        nothing is rendered."""
        with _node_fuel(node):
            legal, rejected = _sort_configs(self.template(node))
        return Legality(len(legal), rejected)

    def default(self, node: SchedulerNode) -> TemplateCaller:
        """Return the configuration chosen by the problem's size, without any measurement."""
        with _node_fuel(node):
            template = self.template(node)
            return template.generate(template.default_config())

    def is_preferred(self, node: SchedulerNode) -> bool:  # noqa: ARG002 - most are not
        """Whether its default is assumed to be faster than that of the competing scheduling when
        neither was measured."""
        return False

    def generate(self, node: SchedulerNode, template: str, config: Config) -> TemplateCaller:
        """Return the candidate that the named template makes with a valid configuration. Raises
        ``ValueError`` if the node has no template with that name."""
        with _node_fuel(node):
            node_template = self.template(node)
            if node_template.name != template:
                raise ValueError(f"{node.name} has no template {template}")
            return node_template.generate(config)

    def is_candidate(self, node: SchedulerNode, template: str, config: Config) -> bool:
        """Whether that is one of the node's candidates, or its default."""
        with _node_fuel(node):
            node_template, values = self.template(node), dict(config)
            if node_template.name != template:
                return False
            if any(values == dict(candidate) for candidate in node_template.configs()):
                return node_template.reject(values) is None
            with suppress(UserError):  # no configuration is valid
                return values == dict(node_template.default_config())
            return False

    def define_kernel(self, kernel: RenderedKernel) -> RenderedKernel:
        """Return the one kernel with that source: nodes that render the same source share it.

        The name contains the source's digest, so equal names mean equal sources.
        """
        return self._kernels.setdefault(kernel.name, kernel)

    def codegen(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        """Return the kernel (shared by all nodes of equal source) and this node's call of it."""
        if caller.node != node.name:
            raise ValueError(f"a candidate of {caller.node} cannot be used for {node.name}")
        return self.define_kernel(caller.kernel), caller.call


def _sort_configs(
    template: KernelTemplate,
) -> tuple[list[Config], tuple[RejectedConfig, ...]]:
    """Return a template's valid configurations, and the invalid ones."""
    legal: list[Config] = []
    rejections: list[RejectedConfig] = []
    for config in template.configs():
        rejection = template.reject(config)
        if rejection is None:
            legal.append(config)
        else:
            rejections.append(RejectedConfig(template.name, tuple(config.items()), rejection))
    return legal, tuple(rejections)


TEMPLATE_KINDS = (
    GroupKind.GEMM,
    GroupKind.CONVOLUTION,
    GroupKind.DEPTHWISE,
    GroupKind.ATTENTION,
)
"""Groups around one operation that is computed as a whole, with operations fused before and
after."""


class TemplateScheduling(BaseScheduling):
    """A scheduling whose candidates return the output that replaces a node's operations."""

    def codegen(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        output = caller.output()
        written = {buffer.name for buffer in output.outputs}
        fits = written == set(node.writes) and set(output.inputs) <= set(node.reads)
        if caller.node == node.name and not fits:
            raise ValueError(
                f"{output.template} leaves {sorted(written)} of {sorted(output.inputs)}, but"
                f" {node.name} makes {sorted(node.writes)} of {sorted(node.reads)}"
            )
        if node.kind in TEMPLATE_KINDS:
            return self.codegen_template(node, caller)
        return super().codegen(node, caller)

    def codegen_template(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        """Define and call a template node's kernel. The template's own contraction is not a
        reduction of the loop nest: a template node with a reduction extent is a bug."""
        if node.group[1] != 1:
            raise ValueError(f"template node {node.name} has a reduction extent {node.group[1]}")
        return super().codegen(node, caller)


@contextmanager
def _node_fuel(node: SchedulerNode) -> Iterator[None]:
    """Name the node in the error if its kernels exceed the limit of work for one node."""
    try:
        with fuel_limit("rendering", RENDERING_FUEL):
            yield
    except LimitError as error:
        raise error.with_location(f"kernel {node.name} ({', '.join(node.nodes)})") from error


class CompetingSchedulings(BaseScheduling):
    """A base scheduling and others for the same targets in other languages: a node's candidates are
    those of all. Its default is the base's or, with ``any_language``, that of a preferred
    competitor. A schedule may mix kernels of all of them."""

    def __init__(
        self,
        base: BaseScheduling,
        competitors: Sequence[BaseScheduling],
        absent: Sequence[RejectedConfig] = (),
        *,
        any_language: bool = False,
    ) -> None:
        """``absent`` gives the reasons why further schedulings do not compete on these targets."""
        self.schedule, self.targets = base.schedule, base.targets
        self.source_file, self.comment_mark = base.source_file, base.comment_mark  # type: ignore[misc]
        self.comment = base.comment
        self._schedulings = (base, *competitors)
        self._absent = tuple(absent)
        self._any_language = any_language
        self._used_kernels: dict[str, None] = {}

    @property
    def base(self) -> BaseScheduling:
        return self._schedulings[0]

    @property
    def members(self) -> tuple[BaseScheduling, ...]:
        return self._schedulings

    def templates(self) -> TemplateTable:
        return self.base.templates()

    @property
    def kernels(self) -> tuple[RenderedKernel, ...]:
        kernels = (kernel for scheduling in self._schedulings for kernel in scheduling.kernels)
        defined = {kernel.name: kernel for kernel in kernels}
        return tuple(defined[name] for name in self._used_kernels)

    def template(self, node: SchedulerNode) -> KernelTemplate:
        """Return the base's template."""
        return self.base.template(node)

    def serves(self, node: SchedulerNode) -> bool:
        return any(scheduling.serves(node) for scheduling in self._schedulings)

    def owner(self, source_file: str) -> BaseScheduling:
        for scheduling in self._schedulings:
            if scheduling.source_file == source_file:
                return scheduling
        raise ValueError(f"no scheduling generates {source_file}")

    def candidates(self, node: SchedulerNode) -> Candidates:
        """Return the candidates, the base's first; a competitor without a template reports that."""
        candidates = [self.base.candidates(node)]
        for competitor in self._schedulings[1:]:
            absent = Candidates((), (_no_template(competitor, node),))
            candidates.append(competitor.candidates(node) if competitor.serves(node) else absent)
        return Candidates(
            tuple(caller for entry in candidates for caller in entry.callers),
            (*(config for entry in candidates for config in entry.rejected), *self._absent),
        )

    def legality(self, node: SchedulerNode) -> Legality:
        """Return the legality over all schedulings."""
        legalities = [self.base.legality(node)]
        for competitor in self._schedulings[1:]:
            absent = Legality(0, (_no_template(competitor, node),))
            legalities.append(competitor.legality(node) if competitor.serves(node) else absent)
        rejected = (config for entry in legalities for config in entry.rejected)
        return Legality(sum(entry.legal for entry in legalities), (*rejected, *self._absent))

    def default(self, node: SchedulerNode) -> TemplateCaller:
        for competitor in self._schedulings[1:] if self._any_language else ():
            if competitor.serves(node) and competitor.is_preferred(node):
                with suppress(UserError):  # none of its configurations is valid
                    return competitor.default(node)
        return self.base.default(node)

    def generate(self, node: SchedulerNode, template: str, config: Config) -> TemplateCaller:
        for scheduling in self._schedulings:
            if scheduling.serves(node) and scheduling.template(node).name == template:
                return scheduling.generate(node, template, config)
        raise ValueError(f"{node.name} has no template {template}")

    def is_candidate(self, node: SchedulerNode, template: str, config: Config) -> bool:
        return any(
            scheduling.is_candidate(node, template, config)
            for scheduling in self._schedulings
            if scheduling.serves(node)
        )

    def define_kernel(self, kernel: RenderedKernel) -> RenderedKernel:
        self._used_kernels.setdefault(kernel.name)
        return self.owner(kernel.source_file).define_kernel(kernel)

    def codegen(
        self, node: SchedulerNode, caller: TemplateCaller
    ) -> tuple[RenderedKernel, KernelCall]:
        """Generate code with the scheduling that the candidate belongs to."""
        self._used_kernels.setdefault(caller.kernel.name)
        return self.owner(caller.kernel.source_file).codegen(node, caller)


def _no_template(scheduling: BaseScheduling, node: SchedulerNode) -> RejectedConfig:
    reason = Rejected(Stage.RULE, f"no template for {node.kind} kernels")
    return RejectedConfig(type(scheduling).__name__, (), reason)


SchedulingFactory: TypeAlias = Callable[[Schedule, tuple[Target, ...]], BaseScheduling]
"""A backend's factory of the scheduling for a schedule and its targets."""


def scheduling_for(
    schedule: Schedule, targets: Sequence[Target], *, any_language: bool = False
) -> BaseScheduling:
    """Return the one scheduling for all of these targets, whose kernels share their sources.
    ``any_language``: its defaults may be of any language, not only of the backends' first.

    Raises ``UserError`` if their backends have different schedulings.
    """
    by_scheduling: dict[str, list[str]] = {}
    for target in targets:
        by_scheduling.setdefault(backend_of(target).scheduling, []).append(target.name)
    if len(by_scheduling) > 1:
        first, second, *_ = (", ".join(names) for names in by_scheduling.values())
        raise UserError(
            f"one source cannot support both {first} and {second}: compile for each separately"
        )
    (reference,) = by_scheduling or ("",)
    if not reference:
        raise ValueError("a schedule needs at least one target")
    factory: SchedulingFactory = load_part(reference)
    base = factory(schedule, tuple(targets))
    return with_competitors(base, targets, any_language=any_language)


def with_competitors(
    base: BaseScheduling, targets: Sequence[Target], *, any_language: bool = False
) -> BaseScheduling:
    """Return the scheduling with its competitors on these targets; itself if there are none.

    Only a scheduling that supports all of the targets competes, since a kernel's one source is
    compiled for all.
    """
    references = [backend_of(target).competitors for target in targets]
    first, *others = references
    shared_names = [name for name in first if all(name in names for names in others)]
    competitors: list[BaseScheduling] = []
    absent: list[RejectedConfig] = []
    for name in shared_names:
        factory: type[BaseScheduling] = load_part(name)
        reason = next(filter(None, map(factory.obstacle, targets)), "")
        if reason:
            absent.append(RejectedConfig(factory.__name__, (), Rejected(Stage.RULE, reason)))
        else:
            competitors.append(factory(base.schedule, tuple(targets)))
    if not competitors and not absent:
        return base
    return CompetingSchedulings(base, competitors, absent, any_language=any_language)


def targets_sharing_source(target: Target) -> tuple[Target, ...]:
    """Return every target whose kernels have the same sources, in display order."""
    scheduling = backend_of(target).scheduling
    return tuple(
        supported
        for backend in backends()
        if backend.scheduling == scheduling
        for supported in targets_of(backend)
    )
