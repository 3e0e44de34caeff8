"""Print value trees as CuteDSL statements over scalars.

f16 and bf16 are held as Float32 between load and store; booleans are bytes in memory.
"""

from __future__ import annotations

from scheduler.codegen.cutedsl.functions import call_text, expression_form, force_dynamic
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.types import element_name, literal, type_name, type_obstacle
from scheduler.codegen.printing import values
from scheduler.codegen.printing.lines import Lines
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Call, Cast, Value, walk


def obstacle(value: Value) -> str:
    """Return why a tree cannot be printed as CuteDSL, or "" if it can."""
    for part in walk(value):
        if reason := type_obstacle(part.dtype):
            return reason
        if isinstance(part, Call) and expression_form(part) is None:
            return f"{part.op} of {part.args[-1].dtype.label} is not supported by CuteDSL"
        if isinstance(part, Cast) and part.dtype is DType.U64 and part.value.dtype.is_float:
            # Its conversion does not support numbers below 0, where torch's wraps around.
            return f"conversion of {part.value.dtype.label} to u64 is not supported by CuteDSL"
    return ""


class ValuePrinter(values.ValuePrinter):
    """Statements of CuteDSL."""

    index_printer = IndexPrinter
    narrow_index = "cutlass.Int32"

    def element(self, value: Value, dtype: DType) -> str:
        text = super().element(value, dtype)
        return f"{element_name(dtype)}({text})" if dtype is DType.BOOL else text

    def literal(self, value: int | float | complex | bool, dtype: DType) -> str:
        return literal(value, dtype)

    def call(self, call: Call) -> str:
        return call_text(call, self.arguments(call))

    def convert(self, text: str, source: DType, target: DType) -> str:
        compute = source.compute_dtype
        if compute is target:
            return text
        text = force_dynamic(text)
        if target in (DType.F16, DType.BF16) and compute is not DType.F32:
            text = f"{type_name(DType.F32)}({text})"
        elif compute.is_float and target is DType.U32:
            text = f"{type_name(DType.I64)}({text})"
        elif compute.is_float and target.is_integer and target.itemsize < 4:
            # Out of range is undefined for a narrow target; a cast through 32 bits wraps as in
            # torch.
            text = f"{type_name(DType.I32)}({text})"
        return f"{type_name(target)}({text})"

    def upcast(self, text: str, dtype: DType) -> str:
        return text if dtype.compute_dtype is dtype else f"{type_name(dtype.compute_dtype)}({text})"

    def upcast_loaded(self, text: str, dtype: DType) -> str:
        # A pointer does not preserve that its bytes are unsigned.
        if dtype is DType.BOOL or dtype.is_unsigned:
            return f"{type_name(dtype)}({text})"
        return self.upcast(text, dtype)

    def cast_to_compute(self, text: str, dtype: DType) -> str:
        return f"{type_name(dtype.compute_dtype)}({text})"

    def select(self, condition: str, value: str, other: str) -> str:
        return f"select({condition}, {value}, {other})"

    def read(self, pointer: str, offset: str) -> str:
        return f"load({pointer}, {offset})"

    def write(self, pointer: str, offset: str, element: str) -> str:
        return f"store({pointer}, {offset}, {element})"

    def definition(self, dtype: DType, name: str, text: str) -> str:  # noqa: ARG002 - Python
        return f"{name} = {text}"

    def variable(self, dtype: DType, name: str, text: str) -> str:
        # Branches of a kernel assign the existing variable, in its own type.
        return f"{name} = {force_dynamic(text or literal(0, dtype))}"

    def assignment(self, name: str, text: str) -> str:
        return f"{name} = {text}"

    def index_read(self, name: str, value: str, size: str, *, wrap: bool) -> str:
        helper = "wrap_index" if wrap else "clamp_index"
        return f"{name} = {helper}({value}, {size}, {self.index_type})"

    def branch(self, condition: str, body: Lines, else_body: Lines) -> None:
        self.lines.add(f"if {condition}:", ())
        self.lines.extend(body)
        if len(else_body):
            self.lines.add("else:", ())
            self.lines.extend(else_body)
