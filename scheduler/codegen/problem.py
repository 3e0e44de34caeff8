"""A scheduled node as a problem: the computation, independent of names.

Buffers and loop variables are renamed in order of first appearance, and the names of operations and
graph nodes are left out; sizes, dtypes, strides and the whole value trees stay. The result is equal
for two nodes exactly when the same kernels can run both.

Problems are identified only in this way: bundles skip repeated layers by it, the tuner groups nodes
by it, the application stores it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

import sympy

from scheduler.codegen.names import fused_name
from scheduler.fuel import fuel_limit, spend_fuel
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.text import print_expr
from scheduler.ir.operations import (
    Attention,
    Axis,
    Buffer,
    Lowered,
    Operation,
    Scatter,
    Store,
    numel,
)
from scheduler.ir.values import Accumulator, Cast, Indirect, Load, Value, loads
from scheduler.limits import PROBLEM_FUEL

_TIMES_SIGN = " \N{MULTIPLICATION SIGN} "
_LABELS = frozenset({"name", "nodes"})
# Problems without it keep the description from before the field existed.
_WRITTEN_IF_SET = frozenset({"allow_tf32"})
_VARIABLE_NAME = re.compile(r"(i|ind)\d+")  # variable names in the description


@dataclass(frozen=True)
class Problem:
    """A computation to be done: ``digest`` is the sha256 of ``text``, the canonical description.

    ``op`` and ``summary`` (shapes as expressions, types, epilogue) describe it for people;
    ``symbols`` are the sizes that it uses, ``{name: {hint, min, max}}``.
    """

    digest: str
    kind: str
    op: str
    summary: str
    symbols: Mapping[str, Mapping[str, int | None]] = field(hash=False)
    text: str

    def sizes(self, bindings: Mapping[str, int]) -> dict[str, int]:
        """Return the sizes that it uses. Raises ``KeyError`` for a size without a value."""
        return {name: bindings[name] for name in self.symbols}

    def key(self, bindings: Mapping[str, int]) -> str:
        """Return a key that is equal for equal problems at equal sizes, and only for those."""
        return " ".join([self.digest, *(f"{n}={v}" for n, v in self.sizes(bindings).items())])


@dataclass(frozen=True)
class ProblemShape:
    """The properties that make problems comparable (``template``, element types, number of
    extents), and the extents of all operands in sequence, which define their distance."""

    template: str
    dtypes: tuple[str, ...]
    extents: tuple[int, ...]

    def distance(self, other: ProblemShape) -> float:
        """Return the sum of the extents' ratios, in powers of two; infinite for another kind of
        problem."""
        same_kind = (self.template, self.dtypes) == (other.template, other.dtypes)
        if not same_kind or len(self.extents) != len(other.extents):
            return math.inf
        extent_pairs = zip(self.extents, other.extents, strict=True)
        return sum(abs(math.log2((a + 1) / (b + 1))) for a, b in extent_pairs)


def problem_of(node: SchedulerNode, lowered: Lowered) -> Problem:
    """Return the problem that a node with a kernel solves."""
    writer = _CanonicalWriter(lowered.buffers)
    with fuel_limit(f"describing kernel {node.name}", PROBLEM_FUEL):
        content = {
            "kind": node.kind.value,
            "members": [writer.write(member) for member in node.members],
        }
        results = [name for member in node.members for name in member.writes]
        in_registers = [writer.buffer(name) for name in results if name not in node.writes]
        summary = _summary(node.members[0], lowered.buffers)[:300]
    if in_registers:
        content["in_registers"] = in_registers
    text = json.dumps(content, separators=(",", ":"))
    return Problem(
        digest=hashlib.sha256(text.encode()).hexdigest(),
        kind=node.kind.value,
        op=op_name(node, lowered)[:64],
        summary=summary,
        symbols={
            name: {"hint": info.hint, "min": info.minimum, "max": info.maximum}
            for name, info in sorted(lowered.graph.symbols.items())
            if name in writer.sizes
        },
        text=text,
    )


def op_name(node: SchedulerNode, lowered: Lowered) -> str:
    """Return the op as users name it: the template's problem, or the fused ops."""
    main = node.members[0]
    if main.template_op:
        return main.template_op
    return fused_name(lowered.graph.nodes_named(node.nodes)).removeprefix("fused_")


class _CanonicalWriter:
    """Writes operations as plain data, each buffer and variable named by its first appearance."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self._buffers = buffers
        self._names: dict[str, str] = {}
        self._variables: dict[sympy.Symbol, sympy.Symbol] = {}
        self.sizes: set[str] = set()

    def write(self, value: Any) -> Any:
        spend_fuel()
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, sympy.Expr):
            return self._expr(value)
        if isinstance(value, complex):
            return ["complex", value.real, value.imag]
        if isinstance(value, tuple):
            return [self.write(part) for part in value]
        if isinstance(value, Mapping):
            return {str(key): self.write(part) for key, part in value.items()}
        if is_dataclass(value):
            return self._fields(value)
        return value

    def _fields(self, value: Any) -> Any:
        if isinstance(value, Axis):
            return [self._variable(value.var), self.write(value.size)]
        if isinstance(value, Indirect):
            self._variable(value.symbol)
        if isinstance(value, Cast) and value.decides and not value.rounds:
            return self.write(value.value)  # kernels are the same with it and without
        skipped_fields = frozenset[str]() if isinstance(value, Accumulator) else _LABELS
        written: list[Any] = [type(value).__name__]
        for field_ in fields(value):
            if field_.name in skipped_fields or not field_.compare:
                continue
            field_value = getattr(value, field_.name)
            if field_.metadata.get("later"):
                if field_value != field_.default:
                    written.append([field_.name, self.write(field_value)])
                continue
            if field_.name in _WRITTEN_IF_SET:
                written += [field_.name] if field_value else []
            elif field_.name == "buffer" and isinstance(value, Load | Store):
                written.append(self.buffer(field_value))
            else:
                written.append(self.write(field_value))
        return written

    def buffer(self, name: str) -> Any:
        """Return a buffer's new name; at its first appearance, with its type, size and strides."""
        if name in self._names:
            return self._names[name]
        self._names[name] = f"b{len(self._names)}"
        buffer = self._buffers[name]
        shape = [self.write(buffer.size), self.write(buffer.stride)]
        return [self._names[name], buffer.dtype.label, *shape]

    def _variable(self, variable: sympy.Symbol) -> str:
        new = self._variables.setdefault(variable, symbol(f"i{len(self._variables)}"))
        return str(new)

    def _expr(self, expr: Expr) -> str:
        names = dict(self._variables)
        for free in expr.free_symbols - self._variables.keys():
            self.sizes.add(free.name)
            # A buffer read by an index has no number yet if the index comes first.
            if "." in free.name:
                names[free] = symbol(free.name.replace(".", ""))
            elif _VARIABLE_NAME.fullmatch(free.name):
                names[free] = symbol(f"size.{free.name}")
        return print_expr(expr.xreplace(names))


def _summary(main: Operation, buffers: Mapping[str, Buffer]) -> str:
    """Return sizes, types and stored results, on one line."""
    dtypes = "+".join(dict.fromkeys(buffers[store.buffer].dtype.label for store in main.results))
    if isinstance(main, Scatter):
        return f"{_format_extent(main.sources)} into {_format_extent(main.axes)} {dtypes}"
    if not main.template_op:
        outer_axes, inner_axes = main.nest
        over_text = f" over {_format_extent(inner_axes)}" if inner_axes else ""
        return f"{_format_extent(outer_axes)}{over_text} {dtypes}".strip()
    summary = f"{_TIMES_SIGN.join(_format_extent(axes) for axes in main.dimensions)} {dtypes}"
    if main.products and main.products.allow_tf32:
        summary += " (tf32)"
    if isinstance(main, Attention):
        summary += " causal" if main.causal else ""
        summary += "" if main.cap is None else f" cap {main.cap:g}"
    # Buffers that a template reads for its stores alone.
    computed_from = {name for scope in main.operands for name in _buffers_read(scope.value)}
    epilogue_reads = {name for store in main.results for name in _buffers_read(store.value)}
    epilogue_only = len(epilogue_reads - computed_from)
    return f"{summary}, epilogue reads {epilogue_only}" if epilogue_only else summary


def _buffers_read(value: Value) -> set[str]:
    return {load.buffer for load in loads(value)}


def _format_extent(axes: tuple[Axis, ...]) -> str:
    """Return the product of the axes' sizes as text; in parentheses unless it is a single
    factor."""
    text = print_expr(numel(axes))
    return text if text.isalnum() else f"({text})"
