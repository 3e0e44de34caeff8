"""A lowered graph: operations over buffers, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Graph
from scheduler.ir.operations.base import Operation


class BufferKind(StrEnum):
    """What a buffer is for; the manifest's ``kind``."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    INTERMEDIATE = "intermediate"
    OUTPUT = "output"


@dataclass(frozen=True)
class Buffer:
    """Memory with a shape: element type, sizes and strides in elements.

    ``source_name`` is the name in the model's state dictionary (parameters), or of the graph's
    value (inputs and outputs).
    """

    name: str
    dtype: DType
    size: tuple[Expr, ...]
    stride: tuple[Expr, ...]
    kind: BufferKind
    source_name: str = ""


@dataclass(frozen=True)
class Lowered:
    """A graph as operations over buffers, in an order that can be run.

    ``outputs`` name buffers in the model's order (the same buffer may stand twice, or be an
    input). ``inputs`` name the buffers of user inputs in the model's order.
    """

    graph: Graph
    buffers: Mapping[str, Buffer]
    operations: tuple[Operation, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
