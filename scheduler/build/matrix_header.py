"""``kiln/matrix_instructions.h``, from the rows in ``scheduler/matrix_instructions.py``.

    python -m scheduler.build.matrix_header

writes it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from scheduler.build.sandbox_paths import HEADER_ROOT
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import (
    INSTRUCTIONS,
    Layout,
    MatrixInstruction,
    best_instructions,
)
from scheduler.targets.generations import GPUS

HEADER_FILE = HEADER_ROOT / "common" / "kiln" / "matrix_instructions.h"

_HEAD = """\
// Matrix instructions: shapes, types and layouts. Generated from scheduler/matrix_instructions.py
// by `python -m scheduler.build.matrix_header`: change the rows there.
//
// A is [kM, kK], B [kK, kN], D [kM, kN]; a_row(lane, value) is the row of A that a lane holds in
// one of its values, and so on. A lane's value v of D is in row v / kColumns and column
// v % kColumns of its own. A lane has the same k of kRowsA rows of A; kRepeats instructions use up
// what it reads of one of them from LDS at once.
#pragma once

namespace kiln::instruction {

// Names for f32 of which products take 10 bits of mantissa: rounded to nearest, ties away from 0,
// with the instruction (tf32), or before it, since it cuts off the others (xf32). Both are chosen
// as tf32.
struct tf32;
struct xf32;
// Names for floats of 8 bits, which operands hold by their codes.
struct f8e4m3fn;
struct f8e5m2;

// The instruction with M rows for elements of type T: kAvailable says whether this target has it.
template <typename T, int M>
struct Select {
  static constexpr bool kAvailable = false;
};

#define KILN_COORDINATE(name, expression)                                                       \\
  static __device__ __forceinline__ constexpr int name([[maybe_unused]] int lane,               \\
                                                       [[maybe_unused]] int value) {            \\
    return expression;                                                                          \\
  }
"""
_TABLES = "// X(name, how its builtin is called): each instruction of this target\n"


def render_header() -> str:
    parts = [_HEAD]
    for matrix_set, rows in groupby(INSTRUCTIONS, key=lambda row: row.matrix_set):
        parts += [
            _conditional(
                "if",
                dict.fromkeys(gpu.matrix_macro for gpu in GPUS if matrix_set in gpu.matrix_sets),
            ),
            *(render_struct(row) for row in rows),
            "#endif\n",
        ]
    parts.append(_TABLES)  # the instructions of each processor, and which one is used for a type
    macros_by_instructions: dict[tuple[MatrixInstruction, ...], dict[str, None]] = {}
    for gpu in GPUS:
        if gpu.matrix_instructions:
            macros_by_instructions.setdefault(gpu.matrix_instructions, {})[gpu.matrix_macro] = None
    for position, (instructions, macros) in enumerate(macros_by_instructions.items()):
        uses = " ".join(
            f"\\\n  X({instruction.name}, {instruction.call})" for instruction in instructions
        )
        parts.append(_conditional("if" if position == 0 else "elif", macros))
        parts.append(f"#define KILN_MATRIX_INSTRUCTIONS(X) {uses}\n")
        parts += [
            f"template <>\nstruct Select<{_cpp_type_name(best.compute_type)}, {best.m}> {{\n"
            f"  static constexpr bool kAvailable = true;\n  using type = {best.name};\n}};\n"
            for best in best_instructions(instructions)
        ]
    parts += ["#endif\n", "}  // namespace kiln::instruction\n"]
    return "\n".join(parts)


def render_struct(instruction: MatrixInstruction) -> str:
    """Return the traits of one instruction."""
    element, accumulator = (
        _cpp_type_name(instruction.element),
        _cpp_type_name(instruction.accumulator),
    )
    operand = (
        "short"
        if instruction.bits
        else "uint8_t"
        if instruction.register_type.startswith("f8")
        else _cpp_type_name(instruction.register_type)
    )
    words = []  # the types in which the builtin takes the bits of A and B
    if instruction.word:
        size = 8 if instruction.word == "long" else 4
        words.append(
            f"  using Words = {_vector_type(instruction.word, instruction.a_values // size)};"
        )
    lines = [
        f"// {instruction.source}",
        f"struct {instruction.name} {{",
        f"  using Element = {element};",
        f"  using Accumulator = {accumulator};",
        f"  using A = {_vector_type(operand, instruction.a_values)};",
        f"  using B = {_vector_type(operand, instruction.b_values)};",
        f"  using D = {_vector_type(accumulator, instruction.d_values)};",
        *words,
        f"  static constexpr int kM = {instruction.m}, kN = {instruction.n}, kK = {instruction.k},"
        f" kLanes = {instruction.lanes};",
        f"  static constexpr int kCopies = {instruction.copies}, kRepeats = {instruction.repeats};",
        f"  static constexpr int kValuesA = {instruction.a_values},"
        f" kValuesB = {instruction.b_values};",
        f"  static constexpr int kRowsA = {instruction.a_rows};",
        f"  static constexpr int kValues = {instruction.d_values},"
        f" kColumns = {instruction.d_columns};",
        *_coordinate_functions("a", instruction.a, instruction.lanes, instruction.a_values),
        *_coordinate_functions("b", instruction.b, instruction.lanes, instruction.b_values),
        *_coordinate_functions("d", instruction.d, instruction.lanes, instruction.d_values),
        "};\n",
    ]
    return "\n".join(lines)


def _coordinate_functions(name: str, layout: Layout, lanes: int, values: int) -> Iterator[str]:
    """Yield the functions of a layout's coordinates; a remainder with no effect is omitted."""
    for part, coordinate in (("row", layout.row), ("column", layout.column)):
        terms = []
        for digit in coordinate:
            if digit.modulus <= 1:
                continue
            term: str = digit.source
            if digit.divisor > 1:
                term += f" / {digit.divisor}"
            if digit.divisor * digit.modulus < (lanes if digit.source == "lane" else values):
                term += f" % {digit.modulus}"
            terms.append(term if digit.stride == 1 else f"{term} * {digit.stride}")
        yield f"  KILN_COORDINATE({name}_{part}, {' + '.join(terms) or '0'})"


def _vector_type(element: str, values: int) -> str:
    return element if values == 1 else f"{element} __attribute__((ext_vector_type({values})))"


def _cpp_type_name(element: str) -> str:
    is_header_type = element in ("tf32", "xf32") or element.startswith("f8")
    return element if is_header_type else DType.from_label(element).cpp


def _conditional(word: str, macros: Iterable[str]) -> str:
    return f"#{word} " + " || ".join(f"defined({macro})" for macro in macros) + "\n"


if __name__ == "__main__":
    HEADER_FILE.write_text(render_header())
