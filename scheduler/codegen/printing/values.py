"""Print value trees as statements, in any kernel language.

Each call, load and rounding becomes one statement with a name of its own (``tmp0``, ``tmp1``, … as
in Inductor's kernels); repeated subtrees share one. f16 and bf16 are held as float between load and
store and rounded at casts and stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import sympy

from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.precision import Root, fast_calls
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol, variable
from scheduler.ir.index.trees import flat_offset
from scheduler.ir.operations import Buffer, Store
from scheduler.ir.values import (
    Accumulator,
    Call,
    Cast,
    Const,
    IndexValue,
    Indirect,
    Load,
    Masked,
    Value,
)

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Memory:
    """A buffer as the kernel sees it: the name of its pointer, and its layout."""

    pointer: str
    buffer: Buffer

    def flat(self, index: tuple[Expr, ...]) -> Expr:
        """Return the element's offset from the pointer, from one expression per dimension."""
        return flat_offset(index, self.buffer.stride)


class ValuePrinter(ABC):
    """Appends to ``lines`` the statements that compute the requested trees.

    ``memory`` gives the pointers and layouts of the buffers that are read and written;
    ``accumulators`` the names of the template's results; ``loads`` the texts of finished reads (a
    vector's element). ``address`` overrides the offset of an access (a buffer's name and the index
    in the tree), for kernels that have merged loop axes; ``index_type`` holds indices read from
    memory. ``index`` and ``loads`` may be replaced between statements.
    """

    index_printer: ClassVar[type[IndexPrinter]]
    """Prints the language's indices, if no other printer is given."""

    narrow_index: ClassVar[str]
    """The usual ``index_type``: 32 bits."""

    def __init__(
        self,
        lines: Lines,
        memory: Mapping[str, Memory],
        accumulators: Mapping[str, str] | None = None,
        *,
        index: IndexPrinter | None = None,
        index_type: str = "",
        loads: Mapping[Load, str] | None = None,
        address: Callable[[str, tuple[Expr, ...]], Expr] | None = None,
        prefix: str = "tmp",
    ) -> None:
        self.lines = lines
        self._memory = memory
        self._accumulators = accumulators or {}
        self.index = index or self.index_printer()
        self.index_type = index_type or self.narrow_index
        self.loads = dict(loads or {})
        self._address = address or (lambda buffer, i: memory[buffer].flat(i))
        self._prefix = prefix
        self._name_count = 0
        self._scopes: list[dict[Key, str]] = [{}]
        self._keys: dict[int, tuple[Value, Key]] = {}
        self._key_numbers: dict[Key, int] = {}
        self._fast_keys: set[Key] = set()

    # -- used by callers -----------------------------------------------------------------------

    def value(self, value: Value) -> str:
        """Return the expression (a name, a literal) that holds ``value`` here, in its compute
        type."""
        key = self._key(value)
        text = self._find(key)
        if text is None:
            text = self._scopes[-1][key] = self._emit(value)
        return text

    def allow_fast(self, roots: Iterable[Root]) -> None:
        """Allow fast calls from now on where all trees in ``roots`` permit it."""
        calls = fast_calls(roots)
        self._fast_keys = {self._key(call) for call in calls[True]}
        self._fast_keys -= {self._key(call) for call in calls[False]}

    def is_fast(self, call: Call) -> bool:
        """Whether a call may have the error of fast functions."""
        return bool(self._fast_keys) and self._key(call) in self._fast_keys

    def _find(self, key: Key) -> str | None:
        """Return the text under ``key`` from the innermost block that has it."""
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def element(self, value: Value, dtype: DType) -> str:
        """Return ``value`` as an element of type ``dtype``, rounded to it once."""
        if isinstance(value, Cast) and value.dtype is dtype and value.rounds:
            return self.convert(self.value(value.value), value.value.dtype, dtype)
        unrounded = value
        while isinstance(unrounded, Cast) and not unrounded.rounds:
            unrounded = unrounded.value
        if (
            isinstance(unrounded, Load)
            and unrounded.dtype is dtype
            and self._find(self._key(unrounded)) is None
        ):
            return self._read(unrounded)
        return self.convert(self.value(value), value.dtype, dtype)

    def store(self, store: Store) -> None:
        """Add the statements that compute and write ``store``."""
        with self.mark_nodes(store.nodes):
            memory = self._memory[store.buffer]
            element = self.element(store.value, memory.buffer.dtype)
            self.lines.add(self.write(memory.pointer, self.store_offset(store), element))

    def pointer(self, buffer: str) -> str:
        """Return the name of a buffer's pointer."""
        return self._memory[buffer].pointer

    def dtype(self, buffer: str) -> DType:
        """Return the type of a buffer's elements."""
        return self._memory[buffer].buffer.dtype

    def store_offset(self, store: Store) -> str:
        """Return the offset that ``store`` writes to."""
        return self.index(self._address(store.buffer, store.index))

    def bind(self, value: Value, text: str) -> None:
        """Use ``text`` for ``value`` from now on."""
        self._scopes[-1][self._key(value)] = text

    def knows(self, value: Value) -> bool:
        """Whether ``value`` is computed, or bound, here."""
        return self._find(self._key(value)) is not None

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a nested block: values computed inside are not visible outside."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    @contextmanager
    def mark_nodes(self, nodes: tuple[str, ...]) -> Iterator[None]:
        """Mark the lines inside as computing these graph nodes."""
        outer_nodes, self.lines.nodes = self.lines.nodes, nodes or self.lines.nodes
        yield
        self.lines.nodes = outer_nodes

    # -- equal parts are found by number, so that shared trees are walked once --------------------

    def _key(self, value: Value) -> Key:
        value_and_key = self._keys.get(id(value))
        if value_and_key is None:
            # Keep the value with its key: an id may be reused once its object is freed.
            value_and_key = self._keys[id(value)] = (value, self._make_key(value))
        return value_and_key[1]

    def _key_number(self, value: Value) -> int:
        return self._key_numbers.setdefault(self._key(value), len(self._key_numbers))

    def _make_key(self, value: Value) -> Key:
        if isinstance(value, Call):
            return (Call, value.op, value.dtype, *map(self._key_number, value.args))
        if isinstance(value, Cast):
            return Cast, value.dtype, self._key_number(value.value)
        if isinstance(value, Masked):
            return (
                Masked,
                self._key_number(value.condition),
                self._key_number(value.value),
                self._key_number(value.other),
            )
        if isinstance(value, Const):
            # 0.0 and -0.0 compare equal and nan does not equal itself; their texts differ
            # correctly.
            return Const, repr(value.value), value.dtype
        if isinstance(value, Load) and value.indirect:
            indirect_keys = tuple(self._indirect_key(indirect) for indirect in value.indirect)
            return (Load, value.buffer, value.index, *indirect_keys)
        return (value,)

    def _indirect_key(self, indirect: Indirect) -> Key:
        return indirect.symbol, self._key_number(indirect.value), indirect.size, indirect.wrap

    # -- statements ------------------------------------------------------------------------------

    def _define(self, dtype: DType, text: str, node: str = "") -> str:
        name = f"{self._prefix}{self._name_count}"
        self._name_count += 1
        nodes = (node,) if node else None
        self.lines.add(self.definition(dtype, name, text), nodes)
        return name

    def _emit(self, value: Value) -> str:
        if isinstance(value, Const):
            return self.literal(value.value, value.dtype)
        if isinstance(value, Accumulator):
            return self._accumulators[value.name]
        if isinstance(value, Load):
            text = self.upcast_loaded(self._read(value), value.dtype)
            return self._define(value.dtype, text)
        if isinstance(value, Call):
            return self._define(value.dtype, self.call(value), value.node)
        if isinstance(value, Cast):
            text = self.value(value.value)
            if not value.rounds:
                return text
            element = self.convert(text, value.value.dtype, value.dtype)
            return self._define(value.dtype, self.upcast(element, value.dtype), value.node)
        if isinstance(value, IndexValue):
            if value.expr.is_Integer:
                return self.literal(int(value.expr), value.dtype)
            text = self.index(value.expr)
            return self._define(value.dtype, self.cast_to_compute(text, value.dtype))
        return self._masked(value)

    def arguments(self, call: Call) -> list[tuple[str, DType]]:
        """Return the arguments of a call, as names or literals with their types."""
        return [(self.value(arg), arg.dtype) for arg in call.args]

    def _read(self, load: Load) -> str:
        """Return the element itself, in the buffer's own type."""
        loaded_text = self.loads.get(load) if self.loads else None
        if loaded_text is not None:
            return loaded_text
        return self.read(self._memory[load.buffer].pointer, self.offset(load))

    def offset(self, load: Load) -> str:
        """Return the offset that ``load`` reads at; indices from memory are read first."""
        flat = self._address(load.buffer, load.index)
        if load.indirect:
            flat = flat.xreplace({part.symbol: self._indirect(part) for part in load.indirect})
        return self.index(flat)

    def _indirect(self, indirect: Indirect) -> sympy.Symbol:
        """Return a variable for an index read from memory, always brought inside the axis."""
        key: Key = (Indirect, *self._indirect_key(indirect)[1:])
        name = self._find(key)
        if name is not None:
            return symbol(name)
        value, size = self.value(indirect.value), self.index(indirect.size)
        index_var = variable(self._prefix, self._name_count)
        self._name_count += 1
        self.lines.add(self.index_read(self.index(index_var), value, size, wrap=indirect.wrap))
        self._scopes[-1][key] = index_var.name
        return index_var

    def _masked(self, value: Masked) -> str:
        condition = self.value(value.condition)
        body, body_text = self._nested_block(value.value)
        else_body, else_text = self._nested_block(value.other)
        if value.other.dtype.compute_dtype is not value.dtype.compute_dtype:
            else_text = self.cast_to_compute(else_text, value.dtype)
        if not len(body) and not len(else_body):
            return self._define(value.dtype, self.select(condition, body_text, else_text))
        name = f"{self._prefix}{self._name_count}"
        self._name_count += 1
        self.lines.add(self.variable(value.dtype, name, "" if len(else_body) else else_text))
        body.add(self.assignment(name, body_text))
        if len(else_body):
            else_body.add(self.assignment(name, else_text))
        self.branch(condition, body, else_body)
        return name

    def _nested_block(self, value: Value) -> tuple[Lines, str]:
        """Return the statements of ``value`` in a nested block, and its expression there."""
        outer_lines, self.lines = self.lines, self.lines.new_block(self.lines.nodes)
        with self.scope():
            text = self.value(value)
        nested_lines, self.lines = self.lines, outer_lines
        return nested_lines, text

    # -- defined by each language ----------------------------------------------------------------

    @abstractmethod
    def literal(self, value: int | float | complex | bool, dtype: DType) -> str:
        """Return a constant in the type that holds ``dtype``."""

    @abstractmethod
    def call(self, call: Call) -> str:
        """Return the expression of a call."""

    @abstractmethod
    def convert(self, text: str, source: DType, target: DType) -> str:
        """Return ``text``, a value in the compute type of ``source``, rounded to an element of
        ``target``."""

    @abstractmethod
    def upcast(self, text: str, dtype: DType) -> str:
        """Return ``text``, a value of type ``dtype``, in the type in which kernels hold it."""

    def upcast_loaded(self, text: str, dtype: DType) -> str:
        """Return the same for an element in its memory type."""
        return self.upcast(text, dtype)

    @abstractmethod
    def cast_to_compute(self, text: str, dtype: DType) -> str:
        """Return ``text``, a number of another type, in the type that holds ``dtype``."""

    @abstractmethod
    def select(self, condition: str, value: str, other: str) -> str:
        """Return ``value`` if ``condition`` holds, else ``other``: both are computed."""

    @abstractmethod
    def read(self, pointer: str, offset: str) -> str:
        """Return the expression that reads the element at that offset."""

    @abstractmethod
    def write(self, pointer: str, offset: str, element: str) -> str:
        """Return the statement that writes an element."""

    @abstractmethod
    def definition(self, dtype: DType, name: str, text: str) -> str:
        """Return the statement that names a value in its compute type."""

    @abstractmethod
    def variable(self, dtype: DType, name: str, text: str) -> str:
        """Return the statement that declares a variable assigned in branches; ``text`` is "" if all
        branches assign it."""

    @abstractmethod
    def assignment(self, name: str, text: str) -> str:
        """Return the statement of a branch that assigns the variable."""

    @abstractmethod
    def index_read(self, name: str, value: str, size: str, *, wrap: bool) -> str:
        """Return the statement that names an index from memory, brought inside an axis of
        ``size``."""

    @abstractmethod
    def branch(self, condition: str, body: Lines, else_body: Lines) -> None:
        """Add both branches to the lines; ``outside`` may be empty."""
