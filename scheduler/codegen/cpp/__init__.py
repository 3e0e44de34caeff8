"""Sizes, indices and value trees as C++ text."""

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.lines import Lines, Marks
from scheduler.codegen.cpp.literals import literal
from scheduler.codegen.cpp.values import Memory, ValuePrinter

__all__ = [
    "IndexPrinter",
    "Lines",
    "Marks",
    "Memory",
    "ValuePrinter",
    "literal",
]
