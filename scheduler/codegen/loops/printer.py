"""Statements of a loop nest as C++, one element or a pack of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.lines import Lines
from scheduler.codegen.cpp.values import Memory, ValuePrinter, hold
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.statements import Statement
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Axis
from scheduler.ir.values import IndexValue, Load, Value, loads, walk

#: What to do with a statement's value: called inside the innermost loop.
Sink = Callable[[Statement], None]


@dataclass(frozen=True)
class Pack:
    """``width`` steps along ``axis`` are computed by one thread, and moved at once where legal."""

    axis: Axis
    width: int


class NestPrinter:
    """Prints the statements of one nest into ``lines``.

    Outer variables are ``x0``, ``x1``, … and inner ones ``r0``, ``r1``, … whatever the members
    call them, so that equal kernels have equal texts; ``names`` gives them others.
    """

    def __init__(
        self,
        nest: LoopNest,
        lines: Lines,
        memory: Mapping[str, Memory],
        pack: Pack | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.nest = nest
        self.lines = lines
        self._memory = memory
        self._pack = pack if pack and pack.width > 1 else None
        outer = {axis.var.name: f"x{i}" for i, axis in enumerate(nest.outer)}
        inner = {axis.var.name: f"r{i}" for i, axis in enumerate(nest.inner)}
        self.names = {**outer, **inner, **(names or {})}
        self.index = IndexPrinter(ranges=nest.ranges, names=self.names)
        self.values = ValuePrinter(
            lines,
            memory,
            {},
            index=self.index,
            index_type="index_t",
            address=nest.offset,
        )
        self._packed_stores: dict[str, str] = {}
        self._read_backs = 0
        self._kept: dict[Load, str] = {}
        self._filled: set[str] = set()
        written = {statement.store.buffer for statement in nest.statements}
        self._read_back = written & {load.buffer for load in nest.reads()}

    def decode(self, flat: str, axes: Sequence[Axis]) -> None:
        """The variables of ``axes`` from the flat index named ``flat``."""
        quotient = flat
        for position in range(len(axes) - 1, -1, -1):
            name = self.names[axes[position].var.name]
            if position == 0:
                self.lines.add(f"const index_t {name} = {quotient};", ())
                return
            size = self.index.atom(axes[position].size)
            self.lines.add(f"const index_t {name} = {quotient} % {size};", ())
            following = f"{flat}_{position}"
            self.lines.add(f"const index_t {following} = {quotient} / {size};", ())
            quotient = following

    # -- one point or one pack -------------------------------------------------------------------

    def run(self, statements: Sequence[Statement], sink: Sink) -> None:
        """Every statement at one point, or at the points of a pack; ``sink`` takes each value."""
        self._load_ahead(statements)
        if self._pack is None:
            with self.values.scope():
                for statement in statements:
                    sink(statement)
            return
        packed = self._open_packs(statements, self._pack)
        self._each_of_pack(statements, sink, self._pack)
        for statement, name in packed:
            pointer = self._memory[statement.store.buffer].pointer
            place = self.values.place(statement.store)
            text = f"kiln::store_pack({pointer} + {place}, {name});"
            self.lines.add(text, statement.store.nodes)
        self._packed_stores = {}

    def _each_of_pack(self, statements: Sequence[Statement], sink: Sink, pack: Pack) -> None:
        name = self.names[pack.axis.var.name]
        inside = self.lines.nested()
        outside, self.lines, self.values.lines = self.lines, inside, inside
        self.values.index = IndexPrinter(
            ranges=self.nest.ranges, names={**self.names, pack.axis.var.name: f"{name}_j"}
        )
        with self.values.scope():
            for statement in statements:
                sink(statement)
        self.lines = self.values.lines = outside
        self.values.index = self.index
        self.lines.add("#pragma unroll", ())
        with self.lines.block(f"for (int j = 0; j < {pack.width}; ++j)"):
            if f"{name}_j" in str(inside):
                self.lines.add(f"const index_t {name}_j = {name} + j;", ())
            self.lines.extend(inside)

    def store(self, statement: Statement) -> None:
        """A sink: the value of a pointwise statement goes to its buffer."""
        store = statement.store
        dtype = self.nest.buffer(store.buffer).dtype
        with self.values.computing(store.nodes):
            element = self.values.element(store.value, dtype)
            if store.buffer in self._read_back:
                element = self._keep(statement, element, dtype)
            if store.buffer in self.nest.outputs:
                place = self._packed_stores.get(statement.name) or self._place(statement)
                self.lines.add(f"{place} = {element};")

    def _place(self, statement: Statement) -> str:
        pointer = self._memory[statement.store.buffer].pointer
        return f"{pointer}[{self.values.place(statement.store)}]"

    def _keep(self, statement: Statement, element: str, dtype: DType) -> str:
        """A later statement that reads what is written takes it from a name of its own."""
        name = f"here{self._read_backs}"
        self._read_backs += 1
        self.lines.add(f"const {dtype.cpp} {name} = {element};")
        store = statement.store
        self.values.bind(Load(store.buffer, store.index, dtype), hold(name, dtype))
        return name

    # -- reads that are done before the innermost loop -------------------------------------------

    def keep_in_registers(self, kept: Mapping[Load, str]) -> None:
        """Reads that several loops share: each has an array with an element for each step ``k``
        of a thread, which the first loop that reads it fills."""
        self._kept = dict(kept)

    def is_packed(self, load: Load) -> bool:
        """Whether the elements of a pack are read at once."""
        if self._pack is None:
            return False
        access = self.nest.access(load.buffer, load.index)
        return self.nest.is_vector(access, self._pack.axis, self._pack.width) and not any(
            self._moves(part.value, self._pack) for part in load.indirect
        )

    def _load_ahead(self, statements: Sequence[Statement]) -> None:
        written = {statement.store.buffer for statement in statements if statement.kind is None}
        self.values.loads = {}
        for statement in statements:
            for load in loads(statement.value):
                if load in self.values.loads or load.buffer in written:
                    continue
                if load in self._kept or self.is_packed(load):
                    with self.values.computing(statement.store.nodes):
                        self._load_one_ahead(load)

    def _load_one_ahead(self, load: Load) -> None:
        kept = self._kept.get(load)
        name = f"{kept}[k]" if kept else f"const auto pack{len(self.values.loads)}"
        if kept not in self._filled:
            place = f"{self._memory[load.buffer].pointer} + {self.values.offset(load)}"
            width = self._pack.width if self._pack else 1
            text = f"kiln::load_pack<{width}>({place})" if width > 1 else f"*({place})"
            self.lines.add(f"{name} = {text};")
            if kept:
                self._filled.add(kept)
        element = "[j]" if self._pack else ""
        self.values.loads[load] = name.removeprefix("const auto ") + element

    def _moves(self, value: Value, pack: Pack) -> bool:
        """Whether an index that is read from memory changes along the pack."""
        for part in walk(value):
            if isinstance(part, IndexValue) and pack.axis.var in part.expr.free_symbols:
                return True
            if isinstance(part, Load):
                offset = self.nest.access(part.buffer, part.index).offset
                if offset.step(pack.axis.var) != 0:
                    return True
        return False

    def _open_packs(
        self, statements: Sequence[Statement], pack: Pack
    ) -> list[tuple[Statement, str]]:
        packed: list[tuple[Statement, str]] = []
        self._packed_stores = {}
        for statement in statements:
            if statement.kind is not None:
                continue
            access = self.nest.access(statement.store.buffer, statement.store.index)
            if not self.nest.is_vector(access, pack.axis, pack.width):
                continue
            name = f"out{len(packed)}"
            cpp = self._memory[statement.store.buffer].buffer.dtype.cpp
            self.lines.add(f"kiln::Pack<{cpp}, {pack.width}> {name};", ())
            self._packed_stores[statement.name] = f"{name}[j]"
            packed.append((statement, name))
        return packed
