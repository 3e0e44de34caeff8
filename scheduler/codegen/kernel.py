"""A rendered kernel: its source, its C interface, and what its host function launches.

This is all that build, runtime, bundle and the pages need; none of them looks into the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from scheduler.codegen.bundle_paths import source_path
from scheduler.ir.graph import Expr

ArgType: TypeAlias = Literal["ptr", "i32", "i64", "f32", "f64"]
ConfigValue: TypeAlias = int | str | bool


@dataclass(frozen=True)
class KernelArg:
    """One argument of the exported C function, in order.

    After these the C function takes ``size_t* workspace_size, uint8_t* workspace`` and the stream
    of the device's runtime. A pointer may be null only where its buffer is empty.
    """

    name: str
    type: ArgType
    is_output: bool = False
    dtype: str = ""  # Inductor's short name, for pointers


@dataclass(frozen=True)
class Launch:
    """One launch that the exported function does.

    ``grid`` are expressions over the scalar arguments' names (blocks in x, y, z); ``block``
    threads; ``args`` the names of the exported function's arguments that the device function
    takes, in order, ``workspace`` among them where it is used. With ``dynamic_lds`` the LDS is
    asked for at launch time; otherwise ``lds_bytes`` is fixed in the code object.
    """

    function: str
    grid: tuple[Expr, Expr, Expr]
    block: tuple[int, int, int]
    lds_bytes: int
    args: tuple[str, ...]
    dynamic_lds: bool = False


@dataclass(frozen=True)
class LineOrigin:
    """Lines ``first`` to ``last`` (1-based, inclusive) of the source compute these graph nodes."""

    first: int
    last: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class RenderedKernel:
    """The product of code generation for one scheduler node and one configuration.

    ``name`` is ``<backend>_<fused>_<8 hex>``, from the content of ``source`` alone; it is also the
    exported symbol. The same source serves every target of the backend (the text selects by the
    compiler's macros), so that one kernel folder holds builds for several targets.
    """

    name: str
    template: str
    config: Mapping[str, ConfigValue]
    source: str
    source_file: str  # what a file with the source is called
    args: tuple[KernelArg, ...]
    launches: tuple[Launch, ...]
    workspace_bytes: Expr
    nodes: tuple[str, ...]
    line_origins: tuple[LineOrigin, ...] = ()

    @property
    def symbol(self) -> str:
        return self.name

    @property
    def source_path(self) -> str:
        """Where the source lies, relative to the bundle."""
        return source_path(self.name, self.source_file)


class ChoiceSource(StrEnum):
    """Where the choice of a call's kernel comes from."""

    SELECTED = "selected"  # by its times
    MODELLED = "modelled"  # by modelled times: nothing was measured
    DEFAULT = "default"  # the generator's


@dataclass(frozen=True)
class Choice:
    """Why a call is of its kernel. ``not_made`` names a kernel that was selected and that the
    generator does not make any more: the default is called in its place."""

    source: ChoiceSource
    not_made: str = ""


@dataclass(frozen=True)
class CallVariant:
    """What is called instead while the size ``symbol`` is at most ``at_most``."""

    symbol: str
    at_most: int
    kernel: str
    args: Mapping[str, str | Expr]
    choice: Choice | None = None


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel in the wrapper: for each argument a buffer's name or an expression.

    ``variants`` serve smaller sizes, the smallest first; the first that fits is called.
    ``choice`` is None where nothing was chosen by times: the kernel is the default.
    """

    kernel: str
    args: Mapping[str, str | Expr]
    nodes: tuple[str, ...] = field(default=())
    variants: tuple[CallVariant, ...] = ()
    choice: Choice | None = None

    def select_variant(self, bindings: Mapping[str, int]) -> KernelCall:
        """The call that is made at these sizes. Raises ``KeyError`` for a size that is missing."""
        for variant in self.variants:
            if bindings[variant.symbol] <= variant.at_most:
                return KernelCall(variant.kernel, variant.args, self.nodes)
        return KernelCall(self.kernel, self.args, self.nodes)
