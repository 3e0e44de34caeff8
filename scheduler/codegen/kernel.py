"""A rendered kernel: its source, its C interface, and the launches of its host function.

Build, runtime, bundle and the pages need only this; none of them parses the source.
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
    of the device's runtime. A pointer may be null only if its buffer is empty.
    """

    name: str
    type: ArgType
    is_output: bool = False
    dtype: str = ""  # Inductor's short name, for pointers


@dataclass(frozen=True)
class Launch:
    """One launch by the exported function.

    ``grid`` holds expressions over the scalar arguments' names (blocks in x, y, z); ``block`` is in
    threads; ``args`` are the arguments of the exported function that the device function takes, in
    order, including ``workspace`` if it is used. With ``dynamic_lds`` the LDS is requested at
    launch; otherwise ``lds_bytes`` is fixed in the code object.
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
    """The result of code generation for one scheduler node and one configuration.

    ``name`` is ``<backend>_<fused>_<8 hex>``, from the content of ``source`` alone; it is also the
    exported symbol. All targets of the backend share one source (it selects code by the compiler's
    macros), so one kernel folder holds builds for several targets.
    """

    name: str
    template: str
    config: Mapping[str, ConfigValue]
    source: str
    source_file: str  # file name of the source
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
        """Return the path of the source, relative to the bundle."""
        return source_path(self.name, self.source_file)


class ChoiceSource(StrEnum):
    """How a call's kernel was chosen."""

    SELECTED = "selected"  # by measured times
    MODELLED = "modelled"  # by modelled times: nothing was measured
    DEFAULT = "default"  # the generator's default


@dataclass(frozen=True)
class Choice:
    """Why a call uses its kernel. ``not_made`` names a selected kernel that the generator no longer
    makes: the default is called in its place."""

    source: ChoiceSource
    not_made: str = ""


@dataclass(frozen=True)
class CallVariant:
    """The kernel called instead while the size ``symbol`` is at most ``at_most``."""

    symbol: str
    at_most: int
    kernel: str
    args: Mapping[str, str | Expr]
    choice: Choice | None = None


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel in the wrapper: each argument is a buffer's name or an expression.

    ``variants`` are for smaller sizes, smallest first; the first that fits is called. ``choice`` is
    None if nothing was selected by times: the kernel is the default.
    """

    kernel: str
    args: Mapping[str, str | Expr]
    nodes: tuple[str, ...] = field(default=())
    variants: tuple[CallVariant, ...] = ()
    choice: Choice | None = None

    def select_variant(self, bindings: Mapping[str, int]) -> KernelCall:
        """Return the call made at these sizes. Raises ``KeyError`` for a missing size."""
        for variant in self.variants:
            if bindings[variant.symbol] <= variant.at_most:
                return KernelCall(variant.kernel, variant.args, self.nodes)
        return KernelCall(self.kernel, self.args, self.nodes)
