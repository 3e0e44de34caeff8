"""The interface of operations: loops, trees, reads and writes."""

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
    """The kind of kernel template that renders an operation or a group."""

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
        """False for externs, which the reference computes, and for loop markers."""
        return self not in (GroupKind.EXTERN, GroupKind.LOOP)


@dataclass(frozen=True)
class Axis:
    """One loop: its variable and its number of steps."""

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
    """Multiply-adds of elements of ``dtype``; ``allow_tf32``: f32 that may be rounded to tf32."""

    multiply_adds: Expr
    dtype: DType
    allow_tf32: bool = False

    @property
    def operand_eps(self) -> float:
        """Unit roundoff of the type that operands may be rounded to; 0 if they are not rounded."""
        return TF32_EPS if self.allow_tf32 else 0.0

    @property
    def rate_key(self) -> str:
        """The key of the hardware's rate: the type's label, or "tf32"."""
        return "tf32" if self.allow_tf32 else self.dtype.label


#: Metadata of a field that was added after problems were recorded: it is part of a problem's
#: identity only if it differs from its default.
ADDED_LATER: Mapping[str, bool] = {"later": True}

_SIZE = "size_"


def size_buffer_name(symbol: str) -> str:
    """Return the buffer (int64, without dimensions) that holds a data-dependent size.

    The operation that computes the size writes it; operations that need the size come later.
    """
    return _SIZE + symbol


def buffer_size_symbol(name: str) -> str:
    """Return the size that a buffer holds; "" for any other buffer."""
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
        """The template that renders the operation by itself."""

    @property
    @abstractmethod
    def nest(self) -> tuple[Axes, Axes]:
        """The loop nest of the kernel: outer loops, and the loops of a reduction or a scan. A
        template has no inner loops: it implements its reduction itself."""

    @property
    @abstractmethod
    def points(self) -> Axes:
        """The loops over which it stores."""

    @property
    @abstractmethod
    def loops(self) -> Axes:
        """All loops, including those that it reduces over."""

    @property
    @abstractmethod
    def operands(self) -> tuple[OperandView, ...]:
        """The trees that it computes from, each over its own loops. Stored trees are over
        ``points`` and not included."""

    @property
    def needed_operands(self) -> tuple[OperandView, ...]:
        """``operands`` restricted to the points that results depend on."""
        return self.operands

    @property
    @abstractmethod
    def results(self) -> tuple[Store, ...]:
        """Its stores; empty for an extern, which fills whole buffers (``writes``)."""

    @abstractmethod
    def with_results(self, stores: Sequence[Store], nodes: tuple[str, ...]) -> Self:
        """Return the operation with other stores over the same points, and these graph nodes.

        Raises ``ValueError`` if it cannot have that many stores.
        """

    @abstractmethod
    def with_operands(self, values: Sequence[Value]) -> Self:
        """Return the operation with other trees, one for each of its operands, in order.

        Raises ``ValueError`` for another number of trees.
        """

    @property
    def template_op(self) -> str:
        """The op's name for users, if a template implements one op: ``addmm``; "" if the names of
        the graph nodes are used."""
        return ""

    @property
    def dimensions(self) -> tuple[Axes, ...]:
        """Loops by role, as in a problem: batch, m, n, k, without empty ones."""
        return tuple(axes for axes in self.nest if axes)

    @property
    def products(self) -> Products | None:
        """The multiply-adds that any kernel of it needs; None without any."""
        return None

    @property
    def matrix_operands(self) -> tuple[Value, ...]:
        """The operands' trees that matrix instructions take, in the instructions' type."""
        return ()

    @property
    def rounds_reads(self) -> bool:
        """Whether an inlined value must be rounded to the type that it would have in memory.
        Matrix instructions take operands of their own type."""
        return bool(self.matrix_operands)

    @property
    def averaged_operand(self) -> Value | None:
        """The tree whose values are averaged with weights that are rounded to the tree's type."""
        return None

    @property
    def places(self) -> tuple[Indirect, ...]:
        """The indirect indices of its result, read from tensors; empty without any."""
        return ()

    @property
    def accumulation_length(self) -> Expr:
        """The number of terms added sequentially for one result; 0 without a sum."""
        return sympy.Integer(0)

    def type_fault(self) -> str:
        """Return the error in its trees' types, such as ``multiplies f16 by f32``, or "".

        The verifier checks types within a tree and those of stores.
        """
        return ""

    @property
    def trees(self) -> tuple[Value, ...]:
        """All trees: operands first, then stores."""
        stored = (store.value for store in self.results)
        return (*(scope.value for scope in self.operands), *stored)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The buffers that it reads, in order, without duplicates; then the buffers of the
        data-dependent sizes that it needs (``size_buffer_name``), which are passed as arguments."""
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
        loop_sizes = (axis.size for axes in (self.loops, self.points) for axis in axes)
        operand_sizes = (axis.size for scope in self.operands for axis in scope.axes)
        store_indices = (expr for store in self.results for expr in store.index)
        for expr in (*loop_sizes, *operand_sizes, *store_indices):
            sizes.update((name, None) for name in unbacked_sizes(expr))
        return (*read, *(size_buffer_name(name) for name in sizes))

    @property
    def writes(self) -> tuple[str, ...]:
        """The buffers that it writes."""
        return tuple(store.buffer for store in self.results)

    def map_trees(self, change: Callable[[Value], Value]) -> Self:
        """Return the operation with every tree changed; store indices are unchanged."""
        stores = [replace(store, value=change(store.value)) for store in self.results]
        values = [change(scope.value) for scope in self.operands]
        return self.with_operands(values).with_results(stores, self.nodes)

    def with_nodes(self, nodes: tuple[str, ...]) -> Self:
        """Return the operation with additional graph nodes, which come first."""

        def joined(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(dict.fromkeys((*nodes, *names)))

        stores = [replace(store, nodes=joined(store.nodes)) for store in self.results]
        return self.with_results(stores, joined(self.nodes))


class SingleStoreOperation(Operation):
    """An operation with one store; a frozen dataclass."""

    store: Store

    @property
    def results(self) -> tuple[Store, ...]:
        return (self.store,)

    def with_results(self, stores: Sequence[Store], nodes: tuple[str, ...]) -> Self:
        (store,) = stores
        return replace(self, store=store, nodes=nodes)  # type: ignore[type-var]


class MultiStoreOperation(Operation):
    """An operation with any number of stores over the same points; a frozen dataclass."""

    stores: tuple[Store, ...]

    @property
    def results(self) -> tuple[Store, ...]:
        return self.stores

    def with_results(self, stores: Sequence[Store], nodes: tuple[str, ...]) -> Self:
        return replace(self, stores=tuple(stores), nodes=nodes)  # type: ignore[type-var]


def numel(axes: Sequence[Axis]) -> Expr:
    """Return the number of points of loops, as a product that is not simplified."""
    return sympy.Mul(*(axis.size for axis in axes))


def live_operations(operations: Sequence[Operation], needed: Iterable[str]) -> list[Operation]:
    """Return the operations that these buffers depend on, in order."""
    read = set(needed)
    live = []
    for operation in reversed(operations):
        if read.intersection(operation.writes):
            read.update(operation.reads)
            live.append(operation)
    return live[::-1]
