"""Value trees as C++ statements: f16 and bf16 are held as float between load and store."""

from __future__ import annotations

from scheduler.codegen.cpp.functions import call_text, fast_form
from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.literals import literal
from scheduler.codegen.printing import values
from scheduler.codegen.printing.lines import Lines
from scheduler.ir.dtypes import DType
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.values import Call


def convert(text: str, source: DType, target: DType) -> str:
    """Return ``text``, a value in the compute type of ``source``, rounded to an element of
    ``target``."""
    compute = source.compute_dtype
    if compute is target:
        return text
    if target is DType.BOOL:
        return f"{text} != 0"
    if compute.is_complex and not target.is_complex:
        return convert(f"kiln::real({text})", compute.real, target)
    if target.is_float and target.compute_dtype is not target:
        single = text if compute is DType.F32 else f"static_cast<float>({text})"
        return f"kiln::from_float<{target.cpp}>({single})"
    if compute.is_float and not target.is_float and target.itemsize < 4:
        # Out of range is undefined for a narrow target; a cast through 32 bits wraps as in torch.
        return f"static_cast<{target.cpp}>(static_cast<int32_t>({text}))"
    if compute.is_float and target.is_unsigned:
        return f"kiln::to_unsigned<{target.cpp}>({text})"
    return f"static_cast<{target.cpp}>({text})"


def upcast(text: str, dtype: DType) -> str:
    """Return ``text``, an element of type ``dtype``, in the type in which kernels hold it."""
    return text if dtype.compute_dtype is dtype else f"kiln::to_float({text})"


def bit_cast(text: str, source: DType, target: DType) -> str:
    """Return the bits of ``text``, a value in the compute type of ``source``, as a value in that of
    ``target``."""
    element = convert(text, source, source)
    if source.is_integer:  # a literal of a narrow integer is an int
        element = f"static_cast<{source.cpp}>({element})"
    return upcast(f"kiln::bit_cast<{target.cpp}>({element})", target)


class ValuePrinter(values.ValuePrinter):
    """Statements of HIP C++."""

    index_printer = IndexPrinter
    narrow_index = "int32_t"

    def literal(self, value: int | float | complex | bool, dtype: DType) -> str:
        return literal(value, dtype)

    def call(self, call: Call) -> str:
        fast = fast_form(call) if self.is_fast(call) else None
        if fast is not None:
            name, args = fast
            return f"kiln::fast::{name}({', '.join(map(self.value, args))})"
        arguments = self.arguments(call)
        if FUNCTIONS[call.op].result is Result.BITS:
            return bit_cast(*arguments[0], call.dtype)
        return call_text(call, arguments)

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
        index = f"static_cast<{self.index_type}>({helper}({value}, {size}))"
        return f"const {self.index_type} {name} = {index};"

    def branch(self, condition: str, body: Lines, else_body: Lines) -> None:
        self.lines.add(f"if ({condition}) {{", ())
        self.lines.extend(body)
        if len(else_body):
            self.lines.add("} else {", ())
            self.lines.extend(else_body)
        self.lines.add("}", ())
