"""What every operation says of itself: its loops, its trees, what it reads and writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Self, TypeAlias

import sympy

from scheduler.ir.dtypes import TF32_EPS, DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import is_unbacked, unbacked_sizes
from scheduler.ir.values import IndexValue, Indirect, Load, Value, walk


class GroupKind(StrEnum):
    """Which kernel template serves an operation, or several together."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    SCAN = "scan"
    SCATTER = "scatter"
    SORT = "sort"
    GEMM = "gemm"
    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    ATTENTION = "attention"
    EXTERN = "extern"
    LOOP = "loop"

    @property
    def has_kernel(self) -> bool:
        """Not what the reference computes, nor where a loop begins or ends."""
        return self not in (GroupKind.EXTERN, GroupKind.LOOP)


@dataclass(frozen=True)
class Axis:
    """One loop: its variable and how many steps it makes."""

    var: sympy.Symbol
    size: Expr


Axes: TypeAlias = tuple[Axis, ...]


@dataclass(frozen=True)
class OperandView:
    """A tree over loops: element [axes] is ``value``."""

    axes: Axes
    value: Value


@dataclass(frozen=True)
class Store:
    """Write ``value`` to ``buffer`` at ``index`` (one expression for each of its dimensions)."""

    buffer: str
    index: tuple[Expr, ...]
    value: Value
    nodes: tuple[str, ...] = ()  # graph nodes that this store computes


@dataclass(frozen=True)
class Products:
    """Multiplications, each with its addition, of elements of ``dtype``; ``allow_tf32``: f32 that
    may be rounded to tf32."""

    multiply_adds: Expr
    dtype: DType
    allow_tf32: bool = False

    @property
    def operand_eps(self) -> float:
        """Unit roundoff of what operands may be rounded to on their way; 0 without that."""
        return TF32_EPS if self.allow_tf32 else 0.0

    @property
    def rate_key(self) -> str:
        """What hardware's rates are given for: the type's label, or "tf32"."""
        return "tf32" if self.allow_tf32 else self.dtype.label


#: Of a field that operations got after problems were recorded: it belongs to what a problem is
#: only where it is not its default.
ADDED_LATER: Mapping[str, bool] = {"later": True}

_SIZE = "size_"


def size_buffer_name(symbol: str) -> str:
    """The buffer (int64, without dimensions) that says a size that depends on data: the operation
    that makes the size writes it, and whatever needs the size comes after that."""
    return _SIZE + symbol


def buffer_size_symbol(name: str) -> str:
    """The size that a buffer says; "" for any other buffer."""
    symbol = name.removeprefix(_SIZE)
    return symbol if name.startswith(_SIZE) and is_unbacked(symbol) else ""


class Operation(ABC):
    """An operation of a lowered graph: loops, trees over them, and stores.

    ``nodes`` are the graph nodes that it computes.
    """

    name: str
    nodes: tuple[str, ...]

    @property
    @abstractmethod
    def group_kind(self) -> GroupKind:
        """Which template serves it where it stands alone."""

    @property
    @abstractmethod
    def nest(self) -> tuple[Axes, Axes]:
        """Its loops as a kernel nests them: the outer ones, and those that a reduction or a scan
        runs along. A template's reduction is its own affair: it has no inner loops."""

    @property
    @abstractmethod
    def points(self) -> Axes:
        """The loops at whose points it stores."""

    @property
    @abstractmethod
    def loops(self) -> Axes:
        """All loops, those that it reduces over included."""

    @property
    @abstractmethod
    def operands(self) -> tuple[OperandView, ...]:
        """The trees that it computes from, each over its own loops. What is stored is over
        ``points`` and not among them."""

    @property
    def needed_operands(self) -> tuple[OperandView, ...]:
        """``operands`` over the points whose values a result depends on, where these are fewer."""
        return self.operands

    @property
    @abstractmethod
    def results(self) -> tuple[Store, ...]:
        """What it stores; nothing for an extern, which fills whole buffers (``writes``)."""

    @abstractmethod
    def with_results(self, stores: Sequence[Store], nodes: tuple[str, ...]) -> Self:
        """It with other stores over the same points, computing these graph nodes.

        ``ValueError`` where it cannot have that many.
        """

    @abstractmethod
    def with_operands(self, values: Sequence[Value]) -> Self:
        """It with other trees, one for each of its scopes, in their order.

        ``ValueError`` where it has another number of them.
        """

    @property
    def template_op(self) -> str:
        """The op as users name it, where one op is what a template serves: ``addmm``; "" where
        the graph nodes' names say it."""
        return ""

    @property
    def dimensions(self) -> tuple[Axes, ...]:
        """Loops by their role, as a problem is written: batch, m, n, k; those without any go."""
        return tuple(axes for axes in self.nest if axes)

    @property
    def products(self) -> Products | None:
        """The products that it needs whatever its kernel looks like; None without any."""
        return None

    @property
    def matrix_operands(self) -> tuple[Value, ...]:
        """The scopes' trees that matrix instructions take, in the instructions' own type."""
        return ()

    @property
    def rounds_reads(self) -> bool:
        """Whether a value that is computed where it is read must be rounded to the type that it
        would have in memory. Matrix instructions take operands of their own type."""
        return bool(self.matrix_operands)

    @property
    def averaged_operand(self) -> Value | None:
        """The tree whose values it averages by weights that are rounded to the tree's type."""
        return None

    @property
    def places(self) -> tuple[Indirect, ...]:
        """The positions of its result that are read from tensors, where it writes to such."""
        return ()

    @property
    def accumulation_length(self) -> Expr:
        """How many terms are added up, one after the other, for one result; 0 without a sum."""
        return sympy.Integer(0)

    def type_fault(self) -> str:
        """What is wrong with the types of its trees, as ``multiplies f16 by f32``; "" if nothing.

        Types within a tree, and those of stores, are for the verifier to compare.
        """
        return ""

    @property
    def trees(self) -> tuple[Value, ...]:
        """Every tree: what it computes from first, then what is stored."""
        stored = (store.value for store in self.results)
        return (*(scope.value for scope in self.operands), *stored)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The buffers that it reads, in order, each once; behind them those of the sizes that it
        needs and that depend on data (``size_buffer_name``), which come to it as arguments."""
        read: dict[str, None] = {}
        sizes: dict[str, None] = {}
        for tree in self.trees:
            for part in walk(tree):
                if isinstance(part, Load):
                    read[part.buffer] = None
                    exprs: tuple[Expr, ...] = (*part.index, *(i.size for i in part.indirect))
                elif isinstance(part, IndexValue):
                    exprs = (part.expr,)
                else:
                    continue
                sizes.update((name, None) for expr in exprs for name in unbacked_sizes(expr))
        of_loops = (axis.size for axes in (self.loops, self.points) for axis in axes)
        of_scopes = (axis.size for scope in self.operands for axis in scope.axes)
        of_stores = (expr for store in self.results for expr in store.index)
        for expr in (*of_loops, *of_scopes, *of_stores):
            sizes.update((name, None) for name in unbacked_sizes(expr))
        return (*read, *(size_buffer_name(name) for name in sizes))

    @property
    def writes(self) -> tuple[str, ...]:
        """The buffers that it writes."""
        return tuple(store.buffer for store in self.results)

    def map_trees(self, change: Callable[[Value], Value]) -> Self:
        """It with every tree changed; where it stores is not."""
        stores = [replace(store, value=change(store.value)) for store in self.results]
        values = [change(scope.value) for scope in self.operands]
        return self.with_operands(values).with_results(stores, self.nodes)

    def with_nodes(self, nodes: tuple[str, ...]) -> Self:
        """It computing further graph nodes, which come first."""

        def joined(own: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(dict.fromkeys((*nodes, *own)))

        stores = [replace(store, nodes=joined(store.nodes)) for store in self.results]
        return self.with_results(stores, joined(self.nodes))


def numel(axes: Sequence[Axis]) -> Expr:
    """How many points loops have, as a product that is not simplified."""
    return sympy.Mul(*(axis.size for axis in axes))


def live_operations(operations: Sequence[Operation], needed: Iterable[str]) -> list[Operation]:
    """Those that these buffers depend on, in their order."""
    read = set(needed)
    kept = []
    for operation in reversed(operations):
        if read.intersection(operation.writes):
            read.update(operation.reads)
            kept.append(operation)
    return kept[::-1]
