"""The base of every template: from a scheduler node to candidates, each with its kernel text.

A template serves one problem (one scheduler node). It lists configurations, turns the ones that
cannot serve down with a reason, and renders the others. Rendering gives text with ``KERNEL_NAME``
where the name belongs, so that nodes of equal text share one kernel whose name is that text's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.kernel import (
    ConfigValue,
    KernelArg,
    KernelCall,
    Launch,
    LineOrigin,
    RenderedKernel,
)
from scheduler.codegen.names import PLACEHOLDER, kernel_name
from scheduler.codegen.title import title
from scheduler.errors import Rejected, UserError
from scheduler.fuel import spend_fuel
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Buffer, Lowered
from scheduler.targets import Target

_CHARACTERS = 64  # of a kernel's source that are written in a step

Config: TypeAlias = Mapping[str, ConfigValue]


@dataclass(frozen=True)
class RenderedTemplate:
    """What ``render`` gives: text with ``KERNEL_NAME``, its interface, its launches.

    ``values`` holds a buffer's name or an expression for every argument; function names in
    ``launches`` may contain ``KERNEL_NAME`` too.
    """

    source: str
    args: tuple[KernelArg, ...]
    values: Mapping[str, str | Expr]
    launches: tuple[Launch, ...]
    workspace_bytes: Expr
    line_origins: tuple[LineOrigin, ...] = field(default=())


class KernelTemplate(ABC):
    """A template applied to one scheduler node, for a set of targets that share the text."""

    name: ClassVar[str]
    prefix: ClassVar[str]
    """What the names of the backend's kernels begin with."""

    source_file: ClassVar[str]
    """What a file with the text is called."""

    comment_mark: ClassVar[str] = "//"
    """What begins a comment in the text."""

    caller_type: ClassVar[type[TemplateCaller]] = TemplateCaller

    alternative: ClassVar[str] = ""
    """What makes kernels for the nodes that it does not serve; "" where nothing does."""

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        self.node = node
        self.lowered = lowered
        self.targets = targets
        write = comment or MetadataComment(lowered, self.source_file, self.comment_mark)
        self._comment = write(node, PLACEHOLDER)

    # ---- what a template says of itself

    @abstractmethod
    def configs(self) -> Sequence[Config]:
        """Every configuration, in a fixed order, before any rule."""

    @abstractmethod
    def reject(self, config: Config) -> Rejected | None:
        """Why a configuration cannot serve this problem on every target, or None."""

    @abstractmethod
    def default_config(self) -> Config:
        """The configuration that the problem's size speaks for; it must be one that serves.
        Raises ``UserError`` (``unserved``) where none does."""

    @abstractmethod
    def render(self, config: Config) -> RenderedTemplate:
        """The kernel's text and interface for a configuration that serves."""

    # ---- what all share

    def no_config_error(self) -> UserError:
        """That no configuration serves the node on its targets, and why the first one does not."""
        rejections = (self.reject(config) for config in self.configs())
        reason = next(rejected.reason for rejected in rejections if rejected)
        names = ", ".join(target.name for target in self.targets)
        what = title(self.node, self.lowered)
        return UserError(
            f"{self.node.name}: no configuration of {self.name} serves {what} on {names}:"
            f" {reason}{alternative_hint(self.alternative)}"
        )

    def buffers(self, rendered: RenderedTemplate) -> dict[str, Buffer]:
        return {
            value: self.lowered.buffers[value]
            for value in rendered.values.values()
            if isinstance(value, str)
        }

    def kernel_name(self, source: str) -> str:
        """What the kernel with this text is called."""
        return kernel_name(self.prefix, self.node, self.lowered.graph, source)

    def generate(self, config: Config) -> TemplateCaller:
        """One candidate. The configuration must have passed ``reject``."""
        rendered = self.render(config)
        spend_fuel(1 + len(rendered.source) // _CHARACTERS)
        name = self.kernel_name(rendered.source)
        # The name is that of the text without the comment, which speaks of one node alone, and
        # whose first line names the kernel; names of the model in it stay as they are.
        comment = self._comment.replace(PLACEHOLDER, name, 1)
        shift = self._comment.count("\n")
        kernel = RenderedKernel(
            name=name,
            template=self.name,
            config=config,
            source=comment + rendered.source.replace(PLACEHOLDER, name),
            source_file=self.source_file,
            args=rendered.args,
            launches=tuple(_rename_launch(launch, name) for launch in rendered.launches),
            workspace_bytes=rendered.workspace_bytes,
            nodes=self.node.nodes,
            line_origins=tuple(_shift_origin(origin, shift) for origin in rendered.line_origins),
        )
        return self.caller_type(
            node=self.node.name,
            kernel=kernel,
            call=KernelCall(name, rendered.values, self.node.nodes),
            buffers=self.buffers(rendered),
            description=self.describe(config),
        )

    def describe(self, config: Config) -> str:
        """One line for the autotune log."""
        return " ".join(f"{key}={value}" for key, value in config.items())


def alternative_hint(alternative: str) -> str:
    """The end of an error about a node that is not served: what to use for it, "" where nothing
    else makes kernels for it."""
    return f"; use {alternative} for it" if alternative else ""


def _shift_origin(origin: LineOrigin, lines: int) -> LineOrigin:
    return LineOrigin(origin.first + lines, origin.last + lines, origin.nodes)


def _rename_launch(launch: Launch, name: str) -> Launch:
    return Launch(
        launch.function.replace(PLACEHOLDER, name),
        launch.grid,
        launch.block,
        launch.lds_bytes,
        launch.args,
        launch.dynamic_lds,
    )
