"""Print the statements of a loop nest as C++, one element or one pack at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.values import ValuePrinter
from scheduler.codegen.loops import printer
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr


class NestPrinter(printer.NestPrinter):
    """Packs are those of ``kiln/vector.h``; ``index_t`` holds indices."""

    value_printer = ValuePrinter
    index_type = "index_t"
    index: IndexPrinter
    streamed_pointers: Collection[str] = ()
    """Pointers through which each element is read only once."""

    def index_printer(self, names: Mapping[str, str]) -> IndexPrinter:
        multipliers = self.nest.multipliers
        return IndexPrinter(ranges=self.nest.ranges, names=names, multipliers=multipliers)

    def division(self, dividend: str, size: Expr) -> tuple[str, str]:
        if size not in self.nest.multipliers:
            return super().division(dividend, size)
        divide = self.index.print_fast_division
        return divide("remainder", dividend, size), divide("quotient", dividend, size)

    def index_definition(self, name: str, text: str) -> str:
        return f"const index_t {name} = {text};"

    def element_definition(self, dtype: DType, name: str, text: str) -> str:
        return f"const {dtype.cpp} {name} = {text};"

    @contextmanager
    def pack_loop(self, width: int) -> Iterator[None]:
        self.lines.add("#pragma unroll", ())
        with self.lines.block(f"for (int j = 0; j < {width}; ++j)"):
            yield

    def load_pack(self, pointer: str, offset: str, width: int) -> str:
        address = f"{pointer} + {offset}"
        function = "load_pack_once" if pointer in self.streamed_pointers else "load_pack"
        return f"kiln::{function}<{width}>({address})" if width > 1 else f"*({address})"

    def pack_definition(self, name: str, text: str, *, new: bool) -> str:
        return f"{'const auto ' if new else ''}{name} = {text};"

    def store_pack(self, pointer: str, offset: str, name: str) -> str:
        return f"kiln::store_pack({pointer} + {offset}, {name});"

    def empty_pack(self, name: str, dtype: DType, width: int) -> str:
        return f"kiln::Pack<{dtype.cpp}, {width}> {name};"
