"""The C++ of a reduction's or scan's accumulator: its operation, its type, and its steps."""

from __future__ import annotations

from scheduler.codegen.cpp.values import convert
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.reduction.stages import Stage
from scheduler.ir.operations import ReductionKind

OPERATIONS = {
    ReductionKind.SUM: "kiln::Sum",
    ReductionKind.PROD: "kiln::Product",
    ReductionKind.MAX: "kiln::Max",
    ReductionKind.MIN: "kiln::Min",
    ReductionKind.ANY: "kiln::Any",
    ReductionKind.ALL: "kiln::All",
    ReductionKind.ARGMAX: "kiln::ArgMax",
    ReductionKind.ARGMIN: "kiln::ArgMin",
    ReductionKind.LOGSUMEXP: "kiln::LogSumExp",
}


def finds_index(kind: ReductionKind | None) -> bool:
    """Whether a reduction gives an index rather than a value."""
    return kind in (ReductionKind.ARGMAX, ReductionKind.ARGMIN)


def combine_operation(statement: Statement) -> tuple[str, str]:
    """Return the operation of a reduction or scan, and the type that it combines, in C++; indices
    are as wide as the kernel's."""
    assert statement.kind is not None
    if finds_index(statement.kind):
        types = f"{statement.value.dtype.compute_dtype.cpp}, index_t"
        return f"{OPERATIONS[statement.kind]}<{types}>", f"kiln::Found<{types}>"
    cpp = statement.accumulate.compute_dtype.cpp
    return f"{OPERATIONS[statement.kind]}<{cpp}>", cpp


def accumulator_bytes(statement: Statement, stage: Stage) -> int:
    """Return the maximum bytes of a reduction's combined value; a power of two."""
    if finds_index(statement.kind):
        return 16  # kiln::Found: a value and an index of 8 bytes
    itemsize = statement.accumulate.compute_dtype.itemsize
    if statement.name in stage.exponentials:
        return 2 * itemsize
    return 4 * itemsize if statement.name in stage.points else itemsize


def convert_element(statement: Statement, text: str) -> str:
    """Return ``text``, the value of a statement, as an element that its operation combines."""
    return convert(text, statement.value.dtype, statement.accumulate.compute_dtype)


def print_accumulate(statement: Statement, name: str, text: str, *, packed: bool) -> str:
    """Return the statement that adds the element ``text`` to the accumulator ``name`` at the step
    ``rindex``, or at element ``j`` of a pack that begins there."""
    operation, cpp = combine_operation(statement)
    if finds_index(statement.kind):
        position = "rindex + j" if packed else "rindex"
        return f"{name} = {operation}::next({name}, {cpp}{{{text}, {position}}});"
    return f"{name} = {operation}()({name}, {convert_element(statement, text)});"


def print_unordered_accumulate(statement: Statement, name: str, text: str) -> str:
    """Return the statement that adds the element ``text`` to the accumulator at the step
    ``rindex``, which may come before steps that were already added."""
    operation, cpp = combine_operation(statement)
    if finds_index(statement.kind):
        return f"{name} = {operation}()({name}, {cpp}{{{text}, rindex}});"
    return print_accumulate(statement, name, text, packed=False)


def print_index_init(statement: Statement, name: str, first: str, end: str) -> str:
    """Return the statement after a loop from ``first`` to ``end`` in which ``accumulate`` found an
    index."""
    operation, _ = combine_operation(statement)
    return f"{name} = {operation}::begun({name}, {first}, {first} < {end});"
