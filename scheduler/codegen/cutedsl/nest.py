"""Print the statements of a loop nest as CuteDSL, one element or one pack at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.values import ValuePrinter
from scheduler.codegen.loops import printer
from scheduler.codegen.loops.alignment import Pack
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.values import Memory
from scheduler.ir.dtypes import DType


class NestPrinter(printer.NestPrinter):
    """A pack is read as one vector and written from a list; ``index_type`` holds indices."""

    def __init__(
        self,
        nest: LoopNest,
        lines: Lines,
        memory: Mapping[str, Memory],
        pack: Pack | None = None,
        names: Mapping[str, str] | None = None,
        index_type: str = "cutlass.Int32",
    ) -> None:
        self._index_type = index_type
        super().__init__(nest, lines, memory, pack, names)

    def index_printer(self, names: Mapping[str, str]) -> IndexPrinter:
        return IndexPrinter(ranges=self.nest.ranges, names=names)

    def value_printer(self) -> ValuePrinter:
        return ValuePrinter(
            self.lines,
            self._memory,
            index=self.index_printer(self.names),
            index_type=self._index_type,
            address=self.nest.offset,
        )

    def index_definition(self, name: str, text: str) -> str:
        return f"{name} = {text}"

    def element_definition(self, dtype: DType, name: str, text: str) -> str:  # noqa: ARG002
        return f"{name} = {text}"

    @contextmanager
    def pack_loop(self, width: int) -> Iterator[None]:
        with self.lines.block(f"for j in cutlass.range_constexpr({width})"):
            yield

    def load_pack(self, pointer: str, offset: str, width: int) -> str:
        return f"load_pack({pointer}, {offset}, {width})"

    def pack_definition(self, name: str, text: str, *, new: bool) -> str:  # noqa: ARG002
        return f"{name} = {text}"

    def store_pack(self, pointer: str, offset: str, name: str) -> str:
        return f"store_pack({pointer}, {offset}, {name})"

    def empty_pack(self, name: str, dtype: DType, width: int) -> str:  # noqa: ARG002
        return f"{name} = [None] * {width}"
