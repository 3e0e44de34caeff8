"""Value trees as C++ statements: f16 and bf16 are held as float between load and store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler.codegen.cpp.functions import call_text, fast_form
from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.literals import literal
from scheduler.codegen.printing import values
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.values import Memory
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.values import Call, Load


def convert(text: str, source: DType, target: DType) -> str:
    """Return ``text``, a held value of ``source``, as an element of ``target`` (rounded to it)."""
    held = source.compute_dtype
    if held is target:
        return text
    if target is DType.BOOL:
        return f"{text} != 0"
    if held.is_complex and not target.is_complex:
        return convert(f"kiln::real({text})", held.real, target)
    if target.is_float and target.compute_dtype is not target:
        single = text if held is DType.F32 else f"static_cast<float>({text})"
        return f"kiln::from_float<{target.cpp}>({single})"
    if held.is_float and not target.is_float and target.itemsize < 4:
        # Out of range is undefined for a narrow target; a cast through 32 bits wraps as in torch.
        return f"static_cast<{target.cpp}>(static_cast<int32_t>({text}))"
    if held.is_float and target.is_unsigned:
        return f"kiln::to_unsigned<{target.cpp}>({text})"
    return f"static_cast<{target.cpp}>({text})"


def upcast(text: str, dtype: DType) -> str:
    """Return ``text``, an element of type ``dtype``, in the type in which kernels hold it."""
    return text if dtype.compute_dtype is dtype else f"kiln::to_float({text})"


def bit_cast(text: str, source: DType, target: DType) -> str:
    """Return the bits of ``text``, a held value of ``source``, as a held value of ``target``."""
    element = convert(text, source, source)
    if source.is_integer:  # a literal of a narrow integer is an int
        element = f"static_cast<{source.cpp}>({element})"
    return upcast(f"kiln::bit_cast<{target.cpp}>({element})", target)


class ValuePrinter(values.ValuePrinter):
    """``index_type`` holds indices read from memory."""

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
        super().__init__(
            lines,
            memory,
            accumulators,
            index=index or IndexPrinter(),
            loads=loads,
            address=address,
            prefix=prefix,
        )
        self._index_type = index_type

    def literal(self, value: int | float | complex | bool, dtype: DType) -> str:
        return literal(value, dtype)

    def _call_expression(self, value: Call) -> str:
        fast = fast_form(value) if self.is_fast(value) else None
        if fast is None:
            return super()._call_expression(value)
        name, args = fast
        return f"kiln::fast::{name}({', '.join(map(self.value, args))})"

    def call(self, call: Call, args: list[tuple[str, DType]]) -> str:
        if FUNCTIONS[call.op].result is Result.BITS:
            return bit_cast(*args[0], call.dtype)
        return call_text(call, args)

    def convert(self, text: str, source: DType, target: DType) -> str:
        return convert(text, source, target)

    def upcast(self, text: str, dtype: DType) -> str:
        return upcast(text, dtype)

    def cast_to_compute(self, text: str, dtype: DType) -> str:
        return f"static_cast<{dtype.compute_dtype.cpp}>({text})"

    def select(self, condition: str, value: str, other: str) -> str:
        return f"{condition} ? {value} : {other}"

    def read(self, pointer: str, offset: str) -> str:
        return f"{pointer}[{offset}]"

    def write(self, pointer: str, offset: str, element: str) -> str:
        return f"{pointer}[{offset}] = {element};"

    def definition(self, dtype: DType, name: str, text: str) -> str:
        return f"const {dtype.compute_dtype.cpp} {name} = {text};"

    def variable(self, dtype: DType, name: str, text: str) -> str:
        return f"{dtype.compute_dtype.cpp} {name}{f' = {text}' if text else ''};"

    def assignment(self, name: str, text: str) -> str:
        return f"{name} = {text};"

    def index_read(self, name: str, value: str, size: str, *, wrap: bool) -> str:
        helper = "kiln::wrap_index" if wrap else "kiln::clamp_index"
        held = f"static_cast<{self._index_type}>({helper}({value}, {size}))"
        return f"const {self._index_type} {name} = {held};"

    def branch(self, condition: str, inside: Lines, outside: Lines) -> None:
        self.lines.add(f"if ({condition}) {{", ())
        self.lines.extend(inside)
        if len(outside):
            self.lines.add("} else {", ())
            self.lines.extend(outside)
        self.lines.add("}", ())
