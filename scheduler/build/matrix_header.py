"""``kiln/matrix_instructions.h``, from the rows in ``scheduler/matrix_instructions.py``.

    python -m scheduler.build.matrix_header

writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from scheduler.build.sandbox_paths import HEADERS
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import (
    INSTRUCTIONS,
    Layout,
    MatrixInstruction,
    best_instructions,
)
from scheduler.targets.generations import GPUS

HEADER_FILE = HEADERS / "common" / "kiln" / "matrix_instructions.h"

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
    for matrix_set, rows in groupby(INSTRUCTIONS, key=lambda one: one.matrix_set):
        parts += [
            _conditional(
                "if",
                dict.fromkeys(gpu.matrix_macro for gpu in GPUS if matrix_set in gpu.matrix_sets),
            ),
            *(render_struct(row) for row in rows),
            "#endif\n",
        ]
    parts.append(_TABLES)  # the instructions of each processor, and which one is used for a type
    same: dict[tuple[MatrixInstruction, ...], dict[str, None]] = {}
    for gpu in GPUS:
        if gpu.matrix_instructions:
            same.setdefault(gpu.matrix_instructions, {})[gpu.matrix_macro] = None
    for position, (instructions, macros) in enumerate(same.items()):
        uses = " ".join(
            f"\\\n  X({instruction.name}, {instruction.call})" for instruction in instructions
        )
        parts.append(_conditional("if" if position == 0 else "elif", macros))
        parts.append(f"#define KILN_MATRIX_INSTRUCTIONS(X) {uses}\n")
        parts += [
            f"template <>\nstruct Select<{_cpp(best.compute_type)}, {best.m}> {{\n"
            f"  static constexpr bool kAvailable = true;\n  using type = {best.name};\n}};\n"
            for best in best_instructions(instructions)
        ]
    parts += ["#endif\n", "}  // namespace kiln::instruction\n"]
    return "\n".join(parts)


def render_struct(one: MatrixInstruction) -> str:
    """Return the traits of one instruction."""
    element, accumulator = _cpp(one.element), _cpp(one.accumulator)
    operand = (
        "short"
        if one.bits
        else "uint8_t"
        if one.register_type.startswith("f8")
        else _cpp(one.register_type)
    )
    words = []  # the types in which the builtin takes the bits of A and B
    if one.word:
        size = 8 if one.word == "long" else 4
        words.append(f"  using Words = {_vector(one.word, one.a_values // size)};")
    lines = [
        f"// {one.source}",
        f"struct {one.name} {{",
        f"  using Element = {element};",
        f"  using Accumulator = {accumulator};",
        f"  using A = {_vector(operand, one.a_values)};",
        f"  using B = {_vector(operand, one.b_values)};",
        f"  using D = {_vector(accumulator, one.d_values)};",
        *words,
        f"  static constexpr int kM = {one.m}, kN = {one.n}, kK = {one.k}, kLanes = {one.lanes};",
        f"  static constexpr int kCopies = {one.copies}, kRepeats = {one.repeats};",
        f"  static constexpr int kValuesA = {one.a_values}, kValuesB = {one.b_values};",
        f"  static constexpr int kRowsA = {one.a_rows};",
        f"  static constexpr int kValues = {one.d_values}, kColumns = {one.d_columns};",
        *_layout("a", one.a, one.lanes, one.a_values),
        *_layout("b", one.b, one.lanes, one.b_values),
        *_layout("d", one.d, one.lanes, one.d_values),
        "};\n",
    ]
    return "\n".join(lines)


def _layout(name: str, layout: Layout, lanes: int, values: int) -> Iterator[str]:
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


def _vector(element: str, values: int) -> str:
    return element if values == 1 else f"{element} __attribute__((ext_vector_type({values})))"


def _cpp(element: str) -> str:
    named = element in ("tf32", "xf32") or element.startswith("f8")
    return element if named else DType.from_label(element).cpp


def _conditional(word: str, macros: Iterable[str]) -> str:
    return f"#{word} " + " || ".join(f"defined({macro})" for macro in macros) + "\n"


if __name__ == "__main__":
    HEADER_FILE.write_text(render_header())
