"""Value trees as C++ statements.

Each call, load and rounding becomes one statement with a name of its own (``tmp0``, ``tmp1``, …
as Inductor's kernels have them), shared where a tree holds it twice. f16 and bf16 are held as
float between load and store and rounded at casts and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import sympy

from scheduler.codegen.cpp.functions import call_text
from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.lines import Lines
from scheduler.codegen.cpp.literals import literal
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol, variable
from scheduler.ir.index.trees import flat
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
        """The element's offset from the pointer, from one expression a dimension."""
        return flat(index, self.buffer.stride)


def convert(text: str, source: DType, target: DType) -> str:
    """``text``, a held value of ``source``, as an element of ``target`` (rounded to it)."""
    held = source.compute
    if held is target:
        return text
    if target is DType.BOOL:
        return f"{text} != 0"
    if target in (DType.F16, DType.BF16):
        single = text if held is DType.F32 else f"static_cast<float>({text})"
        return f"kiln::from_float<{target.cpp}>({single})"
    if held.is_float and not target.is_float and target.itemsize < 4:
        # Out of range is undefined for a narrow target; by way of 32 bits it wraps as in torch.
        return f"static_cast<{target.cpp}>(static_cast<int32_t>({text}))"
    return f"static_cast<{target.cpp}>({text})"


def hold(text: str, dtype: DType) -> str:
    """``text``, an element of type ``dtype``, in the type in which kernels hold it."""
    return text if dtype.compute is dtype else f"kiln::to_float({text})"


class ValuePrinter:
    """Appends to ``lines`` what computes the trees it is asked for.

    ``memory`` gives the pointers and layouts of the buffers that are read and written;
    ``accumulators`` the names of the template's results; ``loads`` the texts of reads that are
    done already (a vector's element). ``address`` overrides the offset of an access (a buffer's
    name and the index in the tree), for kernels that have merged loop axes. ``index_type`` holds
    indices read from memory. ``index`` and ``loads`` may be exchanged between statements.
    """

    def __init__(
        self,
        lines: Lines,
        memory: Mapping[str, Memory],
        accumulators: Mapping[str, str] | None = None,
        *,
        index: IndexPrinter | None = None,
        index_type: str = "int32_t",
        loads: Mapping[Load, str] | None = None,
        address: Callable[[str, tuple[Expr, ...]], Expr] | None = None,
        prefix: str = "tmp",
    ) -> None:
        self.lines = lines
        self._memory = memory
        self._accumulators = accumulators or {}
        self.index = index or IndexPrinter()
        self._index_type = index_type
        self.loads = dict(loads or {})
        self._address = address or (lambda buffer, i: memory[buffer].flat(i))
        self._prefix = prefix
        self._count = 0
        self._scopes: list[dict[Key, str]] = [{}]
        self._keys: dict[int, tuple[Value, Key]] = {}
        self._numbers: dict[Key, int] = {}

    # -- what callers use ----------------------------------------------------------------------

    def value(self, value: Value) -> str:
        """The expression (a name, a literal) that holds ``value`` here, in its compute type."""
        key = self._key(value)
        known = self._find(key)
        if known is None:
            known = self._scopes[-1][key] = self._emit(value)
        return known

    def _find(self, key: Key) -> str | None:
        """What is known under ``key`` here, in the innermost block that knows it."""
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def element(self, value: Value, dtype: DType) -> str:
        """``value`` as an element of type ``dtype``, rounded to it once."""
        if isinstance(value, Cast) and value.dtype is dtype and _rounds(value):
            return convert(self.value(value.value), value.value.dtype, dtype)
        plain = value
        while isinstance(plain, Cast) and not _rounds(plain):
            plain = plain.value
        if (
            isinstance(plain, Load)
            and plain.dtype is dtype
            and self._find(self._key(plain)) is None
        ):
            return self._read(plain)
        return convert(self.value(value), value.dtype, dtype)

    def store(self, store: Store) -> None:
        """The statements that compute and write ``store``."""
        with self.computing(store.nodes):
            memory = self._memory[store.buffer]
            element = self.element(store.value, memory.buffer.dtype)
            self.lines.add(f"{memory.pointer}[{self.place(store)}] = {element};")

    def place(self, store: Store) -> str:
        """The offset that ``store`` writes to."""
        return self.index(self._address(store.buffer, store.index))

    def bind(self, value: Value, text: str) -> None:
        """From here on ``value`` is ``text``."""
        self._scopes[-1][self._key(value)] = text

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not known outside: the inside is a block of its own."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    @contextmanager
    def computing(self, nodes: tuple[str, ...]) -> Iterator[None]:
        """Lines inside compute these graph nodes."""
        before, self.lines.nodes = self.lines.nodes, nodes or self.lines.nodes
        yield
        self.lines.nodes = before

    # -- equal parts are found by number, so that shared trees are walked once --------------------

    def _key(self, value: Value) -> Key:
        known = self._keys.get(id(value))
        if known is None:
            # The value is kept beside its key: an id may serve again once its object is gone.
            known = self._keys[id(value)] = (value, self._make_key(value))
        return known[1]

    def _number(self, value: Value) -> int:
        return self._numbers.setdefault(self._key(value), len(self._numbers))

    def _make_key(self, value: Value) -> Key:
        if isinstance(value, Call):
            return (Call, value.op, value.dtype, *map(self._number, value.args))
        if isinstance(value, Cast):
            return Cast, value.dtype, self._number(value.value)
        if isinstance(value, Masked):
            return (
                Masked,
                self._number(value.condition),
                self._number(value.value),
                self._number(value.other),
            )
        if isinstance(value, Const):
            # 0.0 and -0.0 are equal and nan is not equal to itself; their texts are right.
            return Const, repr(value.value), value.dtype
        if isinstance(value, Load) and value.indirect:
            parts = tuple(self._indirect_key(indirect) for indirect in value.indirect)
            return (Load, value.buffer, value.index, *parts)
        return (value,)

    def _indirect_key(self, indirect: Indirect) -> Key:
        return indirect.symbol, self._number(indirect.value), indirect.size, indirect.wrap

    # -- statements ------------------------------------------------------------------------------

    def _define(self, dtype: DType, text: str, node: str = "") -> str:
        name = f"{self._prefix}{self._count}"
        self._count += 1
        nodes = (node,) if node else None
        self.lines.add(f"const {dtype.compute.cpp} {name} = {text};", nodes)
        return name

    def _emit(self, value: Value) -> str:
        if isinstance(value, Const):
            return literal(value.value, value.dtype)
        if isinstance(value, Accumulator):
            return self._accumulators[value.name]
        if isinstance(value, Load):
            return self._load(value)
        if isinstance(value, Call):
            args = [(self.value(arg), arg.dtype) for arg in value.args]
            return self._define(value.dtype, call_text(value, args), value.node)
        if isinstance(value, Cast):
            return self._cast(value)
        if isinstance(value, IndexValue):
            if value.expr.is_Integer:
                return literal(int(value.expr), value.dtype)
            text = self.index(value.expr)
            return self._define(value.dtype, f"static_cast<{value.dtype.compute.cpp}>({text})")
        return self._masked(value)

    def _cast(self, value: Cast) -> str:
        text = self.value(value.value)
        if not _rounds(value):
            return text
        element = convert(text, value.value.dtype, value.dtype)
        return self._define(value.dtype, hold(element, value.dtype), value.node)

    def _load(self, load: Load) -> str:
        return self._define(load.dtype, hold(self._read(load), load.dtype))

    def _read(self, load: Load) -> str:
        """The element itself, in the buffer's own type."""
        done = self.loads.get(load) if self.loads else None
        if done is not None:
            return done
        return f"{self._memory[load.buffer].pointer}[{self.offset(load)}]"

    def offset(self, load: Load) -> str:
        """Where ``load`` reads; indices from memory are read first."""
        flat = self._address(load.buffer, load.index)
        if load.indirect:
            flat = flat.xreplace({part.symbol: self._indirect(part) for part in load.indirect})
        return self.index(flat)

    def _indirect(self, indirect: Indirect) -> sympy.Symbol:
        """A variable that stands for the index read from memory, inside the axis in any case."""
        key: Key = (Indirect, *self._indirect_key(indirect)[1:])
        known = self._find(key)
        if known is not None:
            return symbol(known)
        value, size = self.value(indirect.value), self.index(indirect.size)
        helper = "kiln::wrap_index" if indirect.wrap else "kiln::clamp_index"
        read = variable(self._prefix, self._count)
        self._count += 1
        text = f"static_cast<{self._index_type}>({helper}({value}, {size}))"
        self.lines.add(f"const {self._index_type} {self.index(read)} = {text};")
        self._scopes[-1][key] = read.name
        return read

    def _masked(self, value: Masked) -> str:
        condition = self.value(value.condition)
        inside, inside_text = self._nested_block(value.value)
        outside, outside_text = self._nested_block(value.other)
        outside_text = _as_held(outside_text, value.other.dtype, value.dtype)
        if not len(inside) and not len(outside):
            return self._define(value.dtype, f"{condition} ? {inside_text} : {outside_text}")
        name = f"{self._prefix}{self._count}"
        self._count += 1
        cpp = value.dtype.compute.cpp
        if len(outside):
            self.lines.add(f"{cpp} {name};")
        else:
            self.lines.add(f"{cpp} {name} = {outside_text};")
        self.lines.add(f"if ({condition}) {{", ())
        self._inside(inside, f"{name} = {inside_text};")
        if len(outside):
            self.lines.add("} else {", ())
            self._inside(outside, f"{name} = {outside_text};")
        self.lines.add("}", ())
        return name

    def _nested_block(self, value: Value) -> tuple[Lines, str]:
        """The statements of ``value`` in a nested block, and its expression there."""
        before, self.lines = self.lines, self.lines.nested(self.lines.nodes)
        with self.scope():
            text = self.value(value)
        inside, self.lines = self.lines, before
        return inside, text

    def _inside(self, inside: Lines, assignment: str) -> None:
        inside.add(assignment)
        self.lines.extend(inside)


def _rounds(cast: Cast) -> bool:
    """Whether a cast changes the held value."""
    source, target = cast.value.dtype, cast.dtype
    return source is not target and target is not source.compute


def _as_held(text: str, source: DType, target: DType) -> str:
    if source.compute is target.compute:
        return text
    return f"static_cast<{target.compute.cpp}>({text})"
