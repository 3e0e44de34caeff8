"""Print sizes, indices and value trees as C++."""

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.literals import literal
from scheduler.codegen.cpp.values import ValuePrinter
from scheduler.codegen.printing.lines import Lines, Marks
from scheduler.codegen.printing.values import Memory

__all__ = [
    "IndexPrinter",
    "Lines",
    "Marks",
    "Memory",
    "ValuePrinter",
    "literal",
]
