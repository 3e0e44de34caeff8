"""``manifest.json``: the content of a bundle and how to run it, as dataclasses and as JSON.

Expressions over the model's symbols (buffer sizes, scalar arguments of calls) and over a kernel's
own scalar arguments (grids, workspace) are stored as text (``ir/index/text.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from scheduler.codegen.benchmark_request import BenchmarkRequest, make_request
from scheduler.codegen.kernel import (
    CallVariant,
    Choice,
    ConfigValue,
    KernelArg,
    KernelCall,
    Launch,
    RenderedKernel,
)
from scheduler.codegen.program import Position, Step, build_program
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import ConstantOutput, Expr, Guard, MatmulPrecision, SymbolInfo
from scheduler.ir.index.text import parse_expr
from scheduler.ir.operations import Assertion, Buffer, BufferKind, LoopEnd
from scheduler.ir.serialize import constant_from_json, constant_to_json

if TYPE_CHECKING:
    from cattrs import Converter

SCHEMA = 1
#: Kinds of the buffers that are written before a model runs.
SUPPLIED_KINDS = (BufferKind.INPUT, BufferKind.PARAMETER, BufferKind.CONSTANT)


@dataclass(frozen=True)
class KernelEntry:
    """A kernel of the bundle: a ``RenderedKernel`` without the text of its source."""

    template: str
    config: Mapping[str, ConfigValue]
    source: str  # path within the bundle
    symbol: str
    nodes: tuple[str, ...]
    workspace_bytes: Expr
    args: tuple[KernelArg, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class ExternEntry:
    """A node that runs through the reference, at its position among the calls."""

    node: str
    op: str
    reason: str
    position: int  # runs before the call of this index
    outputs: tuple[str, ...] = ()  # buffers that it fills
    inputs: tuple[str, ...] = ()  # whole buffers, if these are its only operands


@dataclass(frozen=True)
class CarriedEntry:
    """A loop-carried value, by buffers. ``inside`` aliases ``before``; after each step ``before``
    and ``next`` are swapped; ``after`` aliases ``before`` at the end."""

    before: str
    inside: str
    next: str
    after: str


@dataclass(frozen=True)
class SliceEntry:
    """``slice`` is a slice of the buffer ``whole`` along its first dimension, in its memory."""

    whole: str
    slice: str


@dataclass(frozen=True)
class LoopEntry:
    """A loop: calls that run once per step, and the values that change between steps.

    ``begin`` and ``end`` are the numbers of calls and externs before it. Either ``steps`` is the
    number of steps, or the buffer ``condition`` (one boolean) says whether there is a first step
    and ``again`` whether another follows. A step reads slice number ``first`` + step and writes
    slice number step.
    """

    node: str
    op: str
    begin: tuple[int, int]
    end: tuple[int, int]
    carried: tuple[CarriedEntry, ...] = ()
    steps: Expr | None = None
    condition: str = ""
    again: str = ""
    reads: tuple[SliceEntry, ...] = ()
    first: int = 0
    makes: tuple[SliceEntry, ...] = ()

    @property
    def borrowed(self) -> tuple[str, ...]:
        """The buffers that alias other buffers' memory and have none allocated."""
        aliases = (name for entry in self.carried for name in (entry.inside, entry.after))
        return (*aliases, *(entry.slice for entry in (*self.reads, *self.makes)))

    @property
    def results(self) -> tuple[str, ...]:
        """The buffers that hold the loop's results."""
        return (*(entry.after for entry in self.carried), *(entry.whole for entry in self.makes))


@dataclass(frozen=True)
class MutationEntry:
    """An input that the model writes: its new value is output number ``output``."""

    output: int
    input: str  # buffer


class TimeSource(StrEnum):
    """Whether times were measured on a device or modelled."""

    MEASURED = "measured"
    MODELLED = "modelled"


@dataclass(frozen=True)
class ChosenBy:
    """The source of the times that the kernels were selected by. ``toolchain`` is the compiler and
    its version; ``times``: measured or modelled."""

    device_name: str
    target: str
    toolchain: str
    bindings: Mapping[str, int]
    times: TimeSource = TimeSource.MEASURED


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All data that a launcher needs, in the order of the file."""

    graph_name: str
    graph_digest: str
    symbols: Mapping[str, SymbolInfo]
    targets: tuple[str, ...]
    buffers: Mapping[str, Buffer]
    storage: Mapping[str, str] = field(default_factory=dict)  # buffer -> pool
    pools: Mapping[str, Expr] = field(default_factory=dict)  # pool -> bytes
    kernels: Mapping[str, KernelEntry]
    calls: tuple[KernelCall, ...]
    externs: tuple[ExternEntry, ...]
    loops: tuple[LoopEntry, ...] = ()  # in the order in which they begin
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mutations: tuple[MutationEntry, ...] = ()  # outputs written back to inputs, not returned
    constant_outputs: tuple[ConstantOutput, ...] = ()  # returned too, without buffers
    fused: bool = True  # whether the schedule was made with fusion
    split: tuple[str, ...] = ()  # fused nodes that were split again
    chosen_by: ChosenBy | None = None  # None: all kernels are defaults
    float32_matmul_precision: MatmulPrecision = MatmulPrecision.HIGHEST  # the graph's
    guards: tuple[Guard, ...] = ()  # the graph's
    assertions: tuple[Assertion, ...] = ()  # read after the run

    @property
    def program(self) -> tuple[Step, ...]:
        """Calls, externs and loops in execution order. Raises ``UserError`` if there is no valid
        order."""
        positions = [extern.position for extern in self.externs]
        loops = [(loop.begin, loop.end) for loop in self.loops]
        return build_program(len(self.calls), positions, loops)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as ``schema.json`` describes it."""
        data = _codec().unstructure(self)
        graph = {key: data.pop(f"graph_{key}") for key in ("name", "digest")}
        graph["symbols"] = data.pop("symbols")
        return {"schema": SCHEMA, "graph": graph, **data}

    @staticmethod
    def from_json(data: Mapping[str, Any], what: str = "manifest") -> Manifest:
        """Read JSON that matches the schema (``reader.py`` checks that first). Raises ``UserError``
        that begins with ``what`` and names the field."""
        from scheduler.ir.codec import decode  # noqa: PLC0415 - as below

        graph = data["graph"]
        graph_fields = {f"graph_{key}": graph[key] for key in ("name", "digest")}
        manifest = decode(
            _codec(), {**data, **graph_fields, "symbols": graph["symbols"]}, Manifest, what
        )
        return replace(
            manifest, calls=tuple(_resolve_args(call, manifest.kernels) for call in manifest.calls)
        )


def kernel_entry(kernel: RenderedKernel) -> KernelEntry:
    """Return the entry for a rendered kernel."""
    return KernelEntry(
        template=kernel.template,
        config=dict(kernel.config),
        source=kernel.source_path,
        symbol=kernel.symbol,
        nodes=kernel.nodes,
        workspace_bytes=kernel.workspace_bytes,
        args=kernel.args,
        launches=kernel.launches,
    )


def loop_entry(end: LoopEnd, begin_position: Position, end_position: Position) -> LoopEntry:
    """Return the entry for a loop of a schedule. A position is the number of calls and of externs
    before a marker."""
    begin = end.begin
    pairs = zip(begin.carried, end.carried, strict=True)
    return LoopEntry(
        node=begin.node,
        op=begin.op,
        begin=begin_position,
        end=end_position,
        carried=tuple(CarriedEntry(*first, *last) for first, last in pairs),
        steps=begin.steps,
        condition=begin.condition,
        again=end.condition,
        reads=tuple(SliceEntry(whole, part) for whole, part in begin.slices),
        first=begin.first,
        makes=tuple(SliceEntry(whole, part) for part, whole in end.slices),
    )


def request_of(
    manifest: Manifest, call: KernelCall, target: str, bindings: Bindings
) -> BenchmarkRequest:
    """Return a call at concrete sizes, as plain data for a worker process. Raises ``KeyError`` for
    a symbol without a binding."""
    call = call.select_variant(bindings)
    entry = manifest.kernels[call.kernel]
    return make_request(
        bindings, call, entry.args, manifest.buffers, symbol=entry.symbol, target=target
    )


@cache
def _codec() -> Converter:
    # Rendering does not need it, and its import takes as long as that of all templates.
    from scheduler.ir.codec import key_by_name, make_codec, rename_fields  # noqa: PLC0415

    codec = make_codec()
    # Whether an argument is a buffer or a number is known only once the kernels are.
    codec.register_structure_hook(str | Expr, lambda text, _: codec.structure(text, str))
    key_by_name(codec, SymbolInfo, {"minimum": "min", "maximum": "max"})
    key_by_name(codec, Buffer)
    rename_fields(codec, KernelArg, {"is_output": "output"})
    rename_fields(codec, ExternEntry, where_default=("inputs",))
    optional = ("steps", "condition", "again", "reads", "first", "makes")
    rename_fields(codec, LoopEntry, where_default=optional)
    rename_fields(codec, Launch, where_default=("dynamic_lds",))
    rename_fields(codec, Choice, where_default=("not_made",))
    rename_fields(codec, ChosenBy, where_default=("times",))
    rename_fields(codec, CallVariant, where_default=("choice",))
    rename_fields(codec, KernelCall, where_default=("variants", "choice"))
    codec.register_unstructure_hook(ConstantOutput, constant_to_json)
    codec.register_structure_hook(
        ConstantOutput, lambda data, _: constant_from_json(data, "constant_outputs")
    )
    optional_fields = ("loops", "mutations", "constant_outputs", "split", "chosen_by", "guards")
    rename_fields(
        codec, Manifest, where_default=(*optional_fields, "float32_matmul_precision", "assertions")
    )
    return codec


C = TypeVar("C", KernelCall, CallVariant)


def _resolve_args(call: C, kernels: Mapping[str, KernelEntry]) -> C:
    """Return the call with numeric arguments parsed as expressions.

    The kernel says which arguments are buffers, since buffers and sizes may share names. Arguments
    of an unknown kernel, and unknown arguments, are expressions.
    """
    entry = kernels.get(call.kernel)
    pointers = {arg.name for arg in entry.args if arg.type == "ptr"} if entry else set()
    args = {
        name: str(value) if name in pointers else parse_expr(str(value))
        for name, value in call.args.items()
    }
    if isinstance(call, CallVariant):
        return replace(call, args=args)
    variants = tuple(_resolve_args(variant, kernels) for variant in call.variants)
    return replace(call, args=args, variants=variants)
