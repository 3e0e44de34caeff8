"""A lowered graph: operations over buffers, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Expr, Graph, Ref
from scheduler.ir.operations.base import OperandView, Operation
from scheduler.ir.operations.extern import Extern
from scheduler.ir.values import Load
from scheduler.text import one_line


class BufferKind(StrEnum):
    """The role of a buffer; the manifest's ``kind``."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    INTERMEDIATE = "intermediate"
    OUTPUT = "output"


@dataclass(frozen=True)
class Buffer:
    """Memory with a shape: element type, sizes and strides in elements.

    ``source_name`` is the name in the model's state dictionary (parameters), or that of the
    graph's value (inputs and outputs).
    """

    name: str
    dtype: DType
    size: tuple[Expr, ...]
    stride: tuple[Expr, ...]
    kind: BufferKind
    source_name: str = ""


@dataclass(frozen=True)
class Assertion:
    """An assertion of the model about its data. It fails if the element at ``place`` of the
    boolean ``buffer`` is false."""

    buffer: str
    place: int
    node: str
    message: str

    @property
    def failure(self) -> str:
        """The error message of a failed assertion, in one line."""
        message = one_line(self.message or "no message")
        return f"an assertion of the model failed: {message} (node {self.node})"


@dataclass(frozen=True)
class Lowered:
    """A graph as operations over buffers, in a valid execution order.

    ``outputs`` are buffers in the model's order (a buffer may occur twice, or be an input).
    ``inputs`` are the buffers of user inputs in the model's order. ``without_work`` are in-place
    nodes that need no operation: they write the existing value (``floor_`` of integers), or copy
    another node's result as a whole. ``nonzero`` are sizes that must not be 0, because torch
    raises an error then. ``assertions`` are checked after the last operation.
    """

    graph: Graph
    buffers: Mapping[str, Buffer]
    operations: tuple[Operation, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    without_work: frozenset[str] = frozenset()
    nonzero: tuple[Expr, ...] = ()
    assertions: tuple[Assertion, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        """The buffers that are read after the last operation."""
        return (*self.outputs, *(assertion.buffer for assertion in self.assertions))

    def whole_inputs(self, extern: Extern) -> tuple[str, ...]:
        """Return the buffers that an extern takes, if all arguments of its node are tensors and
        each is a whole buffer; else an empty tuple."""
        node = self.graph.all_nodes_by_name[extern.node]
        names = list(_tensors(value for _, value in node.arguments()))
        views = [extern.inputs.get(name) for name in names if name is not None]
        buffers = [None if view is None else self._whole(view) for view in views]
        if None in names or None in buffers:
            return ()
        return tuple(name for name in buffers if name is not None)

    def _whole(self, view: OperandView) -> str | None:
        value = view.value
        if not isinstance(value, Load) or value.indirect:
            return None
        loops = {axis.var: axis.size for axis in view.axes}
        expected = tuple(axis.var for axis in view.axes)
        places = tuple(i for i in value.index if i in loops)
        sizes = self.buffers[value.buffer].size
        is_whole = all(
            loops[i] == size if i in loops else size == 1
            for i, size in zip(value.index, sizes, strict=True)
        )
        return value.buffer if is_whole and places == expected else None


def _tensors(arguments: Iterable[Argument]) -> Iterator[str | None]:
    """Yield the names of tensor arguments, and None for other arguments."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _tensors(argument)
        else:
            yield argument.name if isinstance(argument, Ref) else None
