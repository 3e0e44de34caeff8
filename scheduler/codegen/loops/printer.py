"""Print the statements of a loop nest, one element or one pack at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar

from scheduler.codegen.loops.alignment import Pack
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.values import Memory, ValuePrinter
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Axis
from scheduler.ir.values import Load, loads

#: Consumes a statement's value: called inside the innermost loop.
Sink = Callable[[Statement], None]


class NestPrinter(ABC):
    """Prints the statements of one nest into ``lines``.

    Outer variables are ``x0``, ``x1``, … and inner ones ``r0``, ``r1``, … regardless of the
    members' names, so that equal kernels have equal sources; ``names`` overrides them.
    """

    value_printer: ClassVar[type[ValuePrinter]]
    """Prints the language's trees."""

    index_type: ClassVar[str] = ""
    """Holds indices read from memory if no other type is given; the usual one if this is ""."""

    def __init__(
        self,
        nest: LoopNest,
        lines: Lines,
        memory: Mapping[str, Memory],
        pack: Pack | None = None,
        names: Mapping[str, str] | None = None,
        index_type: str = "",
    ) -> None:
        self.nest = nest
        self.lines = lines
        self._memory = memory
        self._pack = pack if pack and pack.width > 1 else None
        outer_names = {axis.var.name: f"x{i}" for i, axis in enumerate(nest.outer)}
        inner_names = {axis.var.name: f"r{i}" for i, axis in enumerate(nest.inner)}
        self.names = {**outer_names, **inner_names, **(names or {})}
        self.index = self.index_printer(self.names)
        self.values = self.value_printer(
            lines,
            memory,
            index=self.index_printer(self.names),
            index_type=index_type or self.index_type,
            address=nest.offset,
        )
        self._packed_stores: dict[str, str] = {}
        self._read_back_count = 0
        self._register_arrays: dict[Load, str] = {}
        self._filled_arrays: set[str] = set()
        written_buffers = {statement.store.buffer for statement in nest.statements}
        self._read_back_buffers = written_buffers & {load.buffer for load in nest.reads()}

    def decode(self, flat: str, axes: Sequence[Axis]) -> None:
        """Print the variables of ``axes``, from the flat index named ``flat``."""
        quotient = flat
        for position in range(len(axes) - 1, -1, -1):
            name = self.names[axes[position].var.name]
            if position == 0:
                self.lines.add(self.index_definition(name, quotient), ())
                return
            remainder, next_quotient = self.division(quotient, axes[position].size)
            self.lines.add(self.index_definition(name, remainder), ())
            quotient_name = f"{flat}_{position}"
            self.lines.add(self.index_definition(quotient_name, next_quotient), ())
            quotient = quotient_name

    def division(self, dividend: str, size: Expr) -> tuple[str, str]:
        """Return the texts of remainder and quotient of a non-negative index."""
        text = self.index.atom(size)
        return f"{dividend} % {text}", f"{dividend} {self.index.division} {text}"

    # -- one point or one pack -------------------------------------------------------------------

    def run(self, statements: Sequence[Statement], sink: Sink) -> None:
        """Print every statement at one point, or at the points of a pack; ``sink`` takes each
        value."""
        self._preload(statements)
        if self._pack is None:
            with self.values.scope():
                for statement in statements:
                    sink(statement)
            return
        pack_names: list[tuple[Statement, str]] = []
        for statement in (s for s in statements if s.kind is None):
            buffer, index = statement.store.buffer, statement.store.index
            if self._pack.moves(self.nest, self.nest.access(buffer, index)):
                name = f"out{len(pack_names)}"
                pack_names.append((statement, name))
                dtype = self._memory[buffer].buffer.dtype
                self.lines.add(self.empty_pack(name, dtype, self._pack.width), ())
        self._packed_stores = {statement.name: f"{name}[j]" for statement, name in pack_names}
        self._run_pack(statements, sink, self._pack)
        for statement, name in pack_names:
            pointer = self._memory[statement.store.buffer].pointer
            offset = self.values.store_offset(statement.store)
            self.lines.add(self.store_pack(pointer, offset, name), statement.store.nodes)
        self._packed_stores = {}

    def run_at_points(self, statements: Sequence[Statement], sink: Sink) -> None:
        """Pass each statement to ``sink`` at one point, or at the points of a pack. Nothing is
        loaded ahead or stored afterwards: the caller does that."""
        self.values.loads = {}
        if self._pack is not None:
            self._run_pack(statements, sink, self._pack)
            return
        with self.values.scope():
            for statement in statements:
                sink(statement)

    def _run_pack(self, statements: Sequence[Statement], sink: Sink, pack: Pack) -> None:
        name = self.names[pack.axis.var.name]
        body = self.lines.new_block()
        outer_lines, self.lines, self.values.lines = self.lines, body, body
        element_names = {} if pack.strided else {pack.axis.var.name: f"{name}_j"}
        self.values.index = self.index_printer({**self.names, **element_names})
        with self.values.scope():
            for statement in statements:
                sink(statement)
        self.lines = self.values.lines = outer_lines
        self.values.index = self.index
        with self.pack_loop(pack.width):
            if pack.strided:
                self.lines.add(self.index_definition("xindex_j", pack.strided), ())
                self.decode("xindex_j", self.nest.outer)
            elif f"{name}_j" in str(body):
                self.lines.add(self.index_definition(f"{name}_j", f"{name} + j"), ())
            self.lines.extend(body)

    def store(self, statement: Statement) -> None:
        """Store the value of a pointwise statement to its buffer; a sink."""
        store = statement.store
        dtype = self.nest.buffer(store.buffer).dtype
        with self.values.mark_nodes(store.nodes):
            element = self.values.element(store.value, dtype)
            if store.buffer in self._read_back_buffers:
                # Named, so that later statements can read the element.
                name = f"here{self._read_back_count}"
                self._read_back_count += 1
                self.lines.add(self.element_definition(dtype, name, element))
                load = Load(store.buffer, store.index, dtype)
                self.values.bind(load, self.values.upcast_loaded(name, dtype))
                element = name
            if store.buffer in self.nest.outputs:
                pack_element = self._packed_stores.get(statement.name)
                if pack_element is not None:
                    self.lines.add(self.values.assignment(pack_element, element))
                    return
                pointer = self._memory[store.buffer].pointer
                self.lines.add(self.values.write(pointer, self.values.store_offset(store), element))

    # -- reads before the innermost loop ---------------------------------------------------------

    def keep_in_registers(self, arrays: Mapping[Load, str]) -> None:
        """Keep reads that several loops share: each has an array with an element for each step
        ``k`` of a thread, which the first loop that reads it fills."""
        self._register_arrays = dict(arrays)

    @property
    def row_start(self) -> Expr | None:
        """Return the offset where a row begins, if its packs begin at aligned addresses."""
        return self._pack.row_start if self._pack else None

    @contextmanager
    def scalar_mode(self, arrays: Mapping[Load, str]) -> Iterator[None]:
        """Run statements at one point inside the context, without a pack; reads that several
        loops share have the arrays ``arrays`` there."""
        outer_state = self._pack, self._register_arrays
        self._pack, self._register_arrays = None, dict(arrays)
        yield
        self._pack, self._register_arrays = outer_state

    def load_register_array(self, load: Load, nodes: tuple[str, ...]) -> None:
        """Print one kept read at step ``k``, ahead of all loops."""
        with self.values.mark_nodes(nodes):
            self._preload_one(load)
        self.values.loads = {}

    def is_packed(self, load: Load) -> bool:
        """Whether the elements of a pack are read at once."""
        if self._pack is None:
            return False
        access = self.nest.access(load.buffer, load.index)
        return self._pack.moves(self.nest, access) and not any(
            self.nest.varies_along(part.value, self._pack.axis) for part in load.indirect
        )

    def _preload(self, statements: Sequence[Statement]) -> None:
        written = {statement.store.buffer for statement in statements if statement.kind is None}
        self.values.loads = {}
        for statement in statements:
            for load in loads(statement.value):
                if load in self.values.loads or load.buffer in written or self.values.knows(load):
                    continue
                if load in self._register_arrays or self.is_packed(load):
                    with self.values.mark_nodes(statement.store.nodes):
                        self._preload_one(load)

    def _preload_one(self, load: Load) -> None:
        array = self._register_arrays.get(load)
        name = f"{array}[k]" if array else f"pack{len(self.values.loads)}"
        if array not in self._filled_arrays:
            pointer, offset = self._memory[load.buffer].pointer, self.values.offset(load)
            width = self._pack.width if self._pack else 1
            pack_text = self.load_pack(pointer, offset, width)
            self.lines.add(self.pack_definition(name, pack_text, new=not array))
            if array:
                self._filled_arrays.add(array)
        self.values.loads[load] = name + ("[j]" if self._pack else "")

    # -- defined by each language ----------------------------------------------------------------

    def index_printer(self, names: Mapping[str, str]) -> IndexPrinter:
        """Return a printer of the nest's indices, with the texts of its symbols."""
        return self.value_printer.index_printer(ranges=self.nest.ranges, names=names)

    @abstractmethod
    def index_definition(self, name: str, text: str) -> str:
        """Return the statement that names an index."""

    @abstractmethod
    def element_definition(self, dtype: DType, name: str, text: str) -> str:
        """Return the statement that names an element in its memory type."""

    @abstractmethod
    def pack_loop(self, width: int) -> AbstractContextManager[None]:
        """Run the lines inside for each ``j`` of a pack."""

    @abstractmethod
    def load_pack(self, pointer: str, offset: str, width: int) -> str:
        """Return the expression that reads ``width`` neighbouring elements at once."""

    @abstractmethod
    def pack_definition(self, name: str, text: str, *, new: bool) -> str:
        """Return the statement that names a pack; unless ``new``, it is already declared."""

    @abstractmethod
    def store_pack(self, pointer: str, offset: str, name: str) -> str:
        """Return the statement that writes a pack."""

    @abstractmethod
    def empty_pack(self, name: str, dtype: DType, width: int) -> str:
        """Return the statement that declares a pack to be filled one element at a time."""
