"""The base of every template: from a scheduler node to candidates, each with its kernel source.

A template solves one problem (one scheduler node). It lists configurations, rejects the invalid
ones with a reason, and renders the others. The rendered text has ``KERNEL_NAME`` in place of the
name, so that nodes of equal text share one kernel, named after that text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from scheduler.codegen.printing.lines import Lines, Marks
from scheduler.codegen.title import title
from scheduler.errors import Rejected, UserError
from scheduler.fuel import spend_fuel
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Buffer, Lowered
from scheduler.targets import Target

_CHARACTERS_PER_STEP = 64  # of a source, per step of fuel

Config: TypeAlias = Mapping[str, ConfigValue]


@dataclass(frozen=True)
class RenderedTemplate:
    """The result of ``render``: text with ``KERNEL_NAME``, its interface, its launches.

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
    """Prefix of the names of the backend's kernels."""

    source_file: ClassVar[str]
    """File name of the source."""

    comment_mark: ClassVar[str] = "//"
    """Start of a comment in the source."""

    lines_type: ClassVar[type[Lines]] = Lines

    caller_type: ClassVar[type[TemplateCaller]] = TemplateCaller

    alternative: ClassVar[str] = ""
    """What makes kernels for the nodes that it does not support; "" if nothing does."""

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

    # ---- defined by each template

    @abstractmethod
    def configs(self) -> Sequence[Config]:
        """Return every configuration, in a fixed order, before any rule is applied."""

    @abstractmethod
    def reject(self, config: Config) -> Rejected | None:
        """Return why a configuration is invalid for this problem on some target, or None."""

    @abstractmethod
    def default_config(self) -> Config:
        """Return the configuration chosen by the problem's size; it must be valid. Raises
        ``UserError`` (``no_config_error``) if none is."""

    @abstractmethod
    def render(self, config: Config) -> RenderedTemplate:
        """Return the kernel's text and interface for a valid configuration."""

    # ---- shared by all

    @cached_property
    def marks(self) -> Marks:
        """Return the marks of the lines of this node's sources."""
        return Marks()

    def lines(self, indent: int = 1) -> Lines:
        """Return empty lines for a source of this node."""
        return self.lines_type(self.marks, indent)

    def no_config_error(self) -> UserError:
        """Return an error: no configuration is valid for the node on its targets, and why the first
        is not."""
        rejections = (self.reject(config) for config in self.configs())
        reason = next(rejected.reason for rejected in rejections if rejected)
        names = ", ".join(target.name for target in self.targets)
        problem = title(self.node, self.lowered)
        return UserError(
            f"{self.node.name}: no configuration of {self.name} is valid for {problem} on "
            f"{names}: {reason}{alternative_hint(self.alternative)}"
        )

    def buffers(self, rendered: RenderedTemplate) -> dict[str, Buffer]:
        return {
            value: self.lowered.buffers[value]
            for value in rendered.values.values()
            if isinstance(value, str)
        }

    def kernel_name(self, source: str) -> str:
        """Return the name of the kernel with this source."""
        return kernel_name(self.prefix, self.node, self.lowered.graph, source)

    def generate(self, config: Config) -> TemplateCaller:
        """Return one candidate. The configuration must have passed ``reject``."""
        rendered = self.render(config)
        spend_fuel(1 + len(rendered.source) // _CHARACTERS_PER_STEP)
        name = self.kernel_name(rendered.source)
        # The name is derived from the text without the comment, which describes one node only and
        # whose first line names the kernel; the model's names in it stay unchanged.
        comment = self._comment.replace(PLACEHOLDER, name, 1)
        shift = self._comment.count("\n")
        kernel = RenderedKernel(
            name=name,
            template=self.name,
            config=config,
            source=comment + rendered.source.replace(PLACEHOLDER, name),
            source_file=self.source_file,
            args=rendered.args,
            launches=tuple(
                replace(launch, function=launch.function.replace(PLACEHOLDER, name))
                for launch in rendered.launches
            ),
            workspace_bytes=rendered.workspace_bytes,
            nodes=self.node.nodes,
            line_origins=tuple(
                LineOrigin(origin.first + shift, origin.last + shift, origin.nodes)
                for origin in rendered.line_origins
            ),
        )
        return self.caller_type(
            node=self.node.name,
            kernel=kernel,
            call=KernelCall(name, rendered.values, self.node.nodes),
            buffers=self.buffers(rendered),
            description=self.describe(config),
        )

    def describe(self, config: Config) -> str:
        """Return one line for the autotune log."""
        return " ".join(f"{key}={value}" for key, value in config.items())


def alternative_hint(alternative: str) -> str:
    """Return the end of an error about an unsupported node: what to use for it, or "" if nothing
    else makes kernels for it."""
    return f"; use {alternative}" if alternative else ""
