"""Print the statements of a loop nest as CuteDSL, one element or one pack at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.codegen.cutedsl.values import ValuePrinter
from scheduler.codegen.loops import printer
from scheduler.ir.dtypes import DType


class NestPrinter(printer.NestPrinter):
    """A pack is read as one vector and written from a list."""

    value_printer = ValuePrinter

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
