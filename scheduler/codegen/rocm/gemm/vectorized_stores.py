"""Stores of neighbouring columns of a product: packs written as one element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy

from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.printing.precision import store_root
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Store
from scheduler.ir.values import Load, Masked, Value, children, walk

_WIDTH = "W"
_BODY_INDENT = 2


@dataclass(frozen=True)
class _VectorAccess:
    """An access to W neighbours: its pointer, and the steps of the first neighbour's offset."""

    pointer: str
    steps: tuple[Expr, ...]


class VectorStorePrinter:
    """Prints a member's stores, each with its offset as the only index (a ``Parametrizer``'s).

    ``column`` stands for the flat column; if the kernel has indices along several axes of n
    (``has_flat_column`` is False), neighbours have no common offset and each is stored alone.
    """

    def __init__(
        self,
        stores: Sequence[Store],
        memory: Mapping[str, Memory],
        names: Mapping[str, str],
        column: sympy.Symbol,
        *,
        has_flat_column: bool,
    ) -> None:
        self._stores = stores
        self._memory = memory
        self._names = names
        self._column = column
        vector_stores = stores if has_flat_column else ()
        accesses = ((s.buffer, self._vector_access(s.buffer, s.index[0])) for s in vector_stores)
        self._vector_stores = {buffer: access for buffer, access in accesses if access is not None}
        self._loads: dict[Load, _VectorAccess] = {}
        for store in stores if self._vector_stores else ():
            for load in _unconditional_loads(store.value):
                indices = (value for indirect in load.indirect for value in walk(indirect.value))
                if any(isinstance(i, Load) and column in i.index[0].free_symbols for i in indices):
                    continue
                access = self._vector_access(load.buffer, load.index[0])
                if access is not None:
                    self._loads[load] = access

    @property
    def has_vectors(self) -> bool:
        """Whether a store writes several neighbours at once."""
        return bool(self._vector_stores)

    def condition(self) -> str:
        """Return the condition that all vectors are at multiples of their size, for the kernel's
        arguments."""
        if not self.has_vectors:
            return "false"
        index = IndexPrinter(names=self._names)
        texts = []
        for access in (*self._vector_stores.values(), *self._loads.values()):
            steps = " | ".join(index(step) for step in access.steps) or "0"
            texts.append(f"kiln::mma::is_run<{_WIDTH}>({access.pointer}, {steps})")
        return " && ".join(dict.fromkeys(texts))

    def body(self, marks: Marks, nodes: tuple[str, ...]) -> str:
        """Return the statements that store the vectors from column ``n``, of the results
        ``acc``."""
        lines = Lines(marks, _BODY_INDENT)
        printer = self._printer(lines, "n.flat", {}, "at")
        pack_elements: dict[Load, str] = {}
        for load, access in self._loads.items():
            with printer.mark_nodes(nodes):
                name = f"pack{len(pack_elements)}"
                address = f"{access.pointer} + ({printer.offset(load)})"
                lines.add(f"const auto {name} = kiln::mma::load_run<{_WIDTH}>({address});")
                pack_elements[load] = f"{name}[j]"
        pack_names = {buffer: f"out{i}" for i, buffer in enumerate(self._vector_stores)}
        for buffer, name in pack_names.items():
            lines.add(f"kiln::Pack<{printer.dtype(buffer).cpp}, {_WIDTH}> {name};", ())
        lines.add("#pragma unroll", ())
        with lines.block(f"for (int j = 0; j < {_WIDTH}; ++j)"):
            values = self._printer(lines, "(n.flat + j)", pack_elements, "tmp")
            values.allow_fast(store_root(s.value, values.dtype(s.buffer)) for s in self._stores)
            for store in self._stores:
                with values.mark_nodes(store.nodes or nodes):
                    if store.buffer not in pack_names:
                        values.store(store)
                        continue
                    element = values.element(store.value, values.dtype(store.buffer))
                    lines.add(values.assignment(f"{pack_names[store.buffer]}[j]", element))
        for store in (s for s in self._stores if s.buffer in pack_names):
            with printer.mark_nodes(store.nodes or nodes):
                address = f"{printer.pointer(store.buffer)} + ({printer.store_offset(store)})"
                lines.add(f"kiln::mma::store_run({address}, {pack_names[store.buffer]});")
        return str(lines)

    def _printer(
        self, lines: Lines, column: str, loads: Mapping[Load, str], prefix: str
    ) -> ValuePrinter:
        return ValuePrinter(
            lines,
            self._memory,
            {"acc": "acc[j]"},
            index=IndexPrinter(names={**self._names, self._column.name: column}),
            loads=loads,
            address=lambda _, index: index[0],
            prefix=prefix,
        )

    def _vector_access(self, buffer: str, offset: Expr) -> _VectorAccess | None:
        """Return the access if the offset is the column plus multiples of steps."""
        row_offset = sympy.expand(offset - self._column)
        if self._column in row_offset.free_symbols:
            return None
        column_steps = []
        for term in sympy.Add.make_args(row_offset):
            factors = sympy.Mul.make_args(term)
            # A step is an argument or a number: the kernel's own indices vary.
            steps = [
                f
                for f in factors
                if f.is_Integer or (f.is_Symbol and self._names.get(f.name, "").startswith("p."))
            ]
            if not all(factor.is_Symbol or factor.is_Integer for factor in factors) or not steps:
                return None
            if term != 0:
                column_steps.append(steps[0])
        return _VectorAccess(self._memory[buffer].pointer, tuple(dict.fromkeys(column_steps)))


def _unconditional_loads(value: Value) -> Iterator[Load]:
    """Yield reads that are not conditional."""
    if isinstance(value, Load):
        yield value
    if isinstance(value, Masked):
        yield from _unconditional_loads(value.condition)
        return
    for child in children(value):
        yield from _unconditional_loads(child)
