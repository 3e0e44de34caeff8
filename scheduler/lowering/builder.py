"""Collects buffers and operations while the nodes of a graph are lowered, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Graph, Node, Subgraph, TensorMeta
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import unbacked_sizes, variable
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.trees import simplify_tree
from scheduler.ir.operations import (
    Axis,
    Buffer,
    BufferKind,
    Operation,
    Pointwise,
    Reduction,
    ReductionKind,
    Scan,
    Scatter,
    Sort,
    Store,
)
from scheduler.ir.values import (
    Accumulator,
    Const,
    IndexValue,
    Indirect,
    Load,
    Value,
    call,
    const,
    index_value,
    rebuild,
    upcast,
)
from scheduler.lowering import layout, trees
from scheduler.lowering.errors import ContradictionError, Unsupported
from scheduler.lowering.tensor import Epilogue, Index, Places, ReadAt, Reader, ReadReduced, Tensor

_ZERO = sympy.Integer(0)
#: Constant elements for which a scan returns that constant everywhere. Kinds not listed do so for
#: every constant; LOGSUMEXP for none. Packed sequences are told apart by such a sum, which is 0
#: everywhere if positions are an arange.
_CONSTANT_SCAN_VALUES: Mapping[ReductionKind, tuple[int, ...]] = {
    ReductionKind.SUM: (0,),
    ReductionKind.PROD: (0, 1),
    ReductionKind.LOGSUMEXP: (),
}

#: Lowers a graph among a node's arguments: from the graph and its inputs to its outputs.
Inlined: TypeAlias = Callable[[Subgraph, Sequence[Any]], tuple[Tensor, ...]]


def _reject_subgraph(subgraph: Subgraph, _inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    raise AssertionError(f"{subgraph.name}: inner graphs are not lowered here")


class Builder:
    """Collects the buffers and operations that op rules create.

    ``node`` is the graph node being lowered and ``sources`` the nodes whose views it reads through;
    both are recorded in the operations made for it. ``inline_subgraph`` lowers an inner graph in
    place.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.hints = {name: info.hint for name, info in graph.symbols.items()}
        self.sizes = Ranges.from_symbols(graph.symbols)
        self.buffers: dict[str, Buffer] = {}
        self.operations: list[Operation] = []
        self.node: Node | None = None
        self.outer: Node | None = None  # the outermost node whose inner graph is being lowered
        #: Whether an op without a kernel in an inner graph may run as an extern. Not in branches:
        #: they compute values that the model does not compute.
        self.externs_inside = True
        self.sources: tuple[str, ...] = ()
        self.inline_subgraph: Inlined = _reject_subgraph
        #: Strides of values whose memory order differs from the graph's.
        self.reordered: Mapping[str, tuple[Expr, ...]] = {}
        #: The value whose memory a value uses: a different one for views.
        self.memory_of: Callable[[str], str] = lambda name: name
        self.knows_strides: Callable[[str], bool] = lambda _: True
        #: Nodes that write in place, with the tensor before and after the write.
        self.writes: list[tuple[str, Tensor, Tensor]] = []
        #: Sizes that must not be 0, in order.
        self.nonzero: dict[Expr, None] = {}
        #: The model's assertions: node, message, boolean.
        self.assertions: list[tuple[str, str, Value]] = []
        self._made = {"buf": 0, "op": 0}
        self._indirects = 0

    def begin(self, node: Node, sources: tuple[str, ...]) -> None:
        self.node, self.sources = node, sources

    @property
    def nodes(self) -> tuple[str, ...]:
        """The graph nodes that the next operation computes."""
        return (*self.sources, self._name) if self.node else self.sources

    def output_meta(self, output: int = 0) -> TensorMeta:
        """The graph's meta of an output of the node."""
        assert self.node is not None
        return self.graph.tensors[self.node.outputs[output]]

    def may_be_equal(self, a: Expr, b: Expr) -> bool:
        """Whether two sizes may be equal. The export's guards are not available here, but they hold
        at the example's sizes, which are compared. Unbacked sizes have no example value."""
        if a == b:
            return True
        if self.is_unbacked(a, b):
            difference = a - b
            return not (difference.is_Integer and difference != 0)
        return layout.size_hint(a, self.hints) == layout.size_hint(b, self.hints)

    def is_unbacked(self, *exprs: Expr) -> bool:
        """Whether any of the sizes is known only at run time."""
        return any(unbacked_sizes(expr) for expr in exprs)

    def check_shape(self, name: str, size: Sequence[Expr]) -> None:
        """Raise ``ContradictionError`` if a value's shape in the graph differs from the shape that
        its node's arguments produce."""
        graph_size = self.graph.tensors[name].size
        if len(graph_size) != len(size) or not all(map(self.may_be_equal, graph_size, size)):
            raise ContradictionError(
                f"{name} has shape {layout.format_shape(graph_size)} in the graph, but its "
                f"arguments give {layout.format_shape(size)}"
            )

    def require_nonempty(self, size: Sequence[Expr], dims: Iterable[int]) -> None:
        """Record that torch raises if one of these dimensions is 0, as ``amax`` does. Raises
        ``Unsupported`` if the size depends on data other than as a factor."""
        for extent in (size[dim] for dim in dims):
            if is_nonnegative(extent - 1, self.sizes):
                continue
            for factor in sympy.Mul.make_args(extent):
                if not factor.is_Symbol and unbacked_sizes(factor):
                    raise Unsupported(f"whether it has {extent} elements depends on data")
                if not factor.is_Integer:
                    self.nonzero[factor] = None

    def assert_true(self, value: Value, message: str) -> None:
        """Record an assertion of the model, unless it holds at all sizes."""
        assert self.node is not None
        value = simplify_tree(value, self.sizes)
        if not trees.is_always_true(value, self.graph.symbols):
            self.assertions.append((self.node.name, message, value))

    def check_output_shape(self, size: Sequence[Expr], output: int = 0) -> None:
        """Call ``check_shape`` for an output of the node."""
        assert self.node is not None
        self.check_shape(self.node.outputs[output], size)

    def check_broadcast(self, sizes: Sequence[Sequence[Expr]]) -> None:
        """Call ``check_output_shape`` with the broadcast of the shapes."""
        self.check_output_shape(layout.broadcast_size(sizes))

    # buffers

    def buffer(
        self,
        dtype: DType,
        size: tuple[Expr, ...],
        stride: tuple[Expr, ...] | None = None,
        kind: BufferKind = BufferKind.INTERMEDIATE,
    ) -> Buffer:
        """Allocate a buffer. ``stride`` defaults to the graph's strides for this shape if those
        have no gaps."""
        if stride is None:
            stride = self._stride(size)
        result = Buffer(self._fresh("buf"), dtype, size, stride, kind)
        self.buffers[result.name] = result
        return result

    def _fresh(self, prefix: str) -> str:
        name = f"{prefix}{self._made[prefix]}"
        self._made[prefix] += 1
        return name if name not in self.buffers else self._fresh(prefix)

    def _stride(self, size: tuple[Expr, ...]) -> tuple[Expr, ...]:
        for name in self.node.outputs if self.node else ():
            meta = self.graph.tensors.get(name)
            if meta is not None and meta.size == size:
                stride = self.reordered.get(name, meta.stride)
                return layout.dense_strides(size, stride, self.hints)
        return layout.contiguous_strides(size)

    def tensor(self, buffer: Buffer) -> Tensor:
        is_single = tuple(extent == 1 for extent in buffer.size)

        def at(index: Index) -> Value:
            load_index = tuple(
                _ZERO if single else i for i, single in zip(index, is_single, strict=True)
            )
            return Load(buffer.name, load_index, buffer.dtype)

        return Tensor(buffer.size, buffer.dtype, at, buffer.name)

    # loops

    def loops(self, size: Sequence[Expr], prefix: str) -> tuple[tuple[Axis, ...], Index]:
        """Loops over a shape, omitting loops of one step, and the index they form."""
        axes: list[Axis] = []
        index: list[Expr] = []
        for extent in size:
            if extent == 1:
                index.append(_ZERO)
            else:
                axes.append(Axis(variable(prefix, len(axes)), extent))
                index.append(axes[-1].var)
        return tuple(axes), tuple(index)

    # operations

    def pointwise(
        self, size: tuple[Expr, ...], dtype: DType, read: Reader, stride: Index | None = None
    ) -> Tensor:
        """Store one value at each point of a new buffer of this shape."""
        buffer = self.buffer(dtype, size, stride)
        axes, index = self._loops_as_it_lies(buffer)
        value = self.finish(read(index), axes)
        store = Store(buffer.name, index, upcast(value, dtype), (self._name,))
        self.add(Pointwise(self._fresh("op"), axes, store, self.nodes))
        return self.tensor(buffer)

    def _loops_as_it_lies(self, buffer: Buffer) -> tuple[tuple[Axis, ...], Index]:
        """Loops over a buffer in its memory order, innermost last, and the index they form."""
        dims = list(range(len(buffer.size)))
        if buffer.stride != layout.contiguous_strides(buffer.size):
            dims.sort(key=lambda d: -layout.size_hint(buffer.stride[d], self.hints))
        axes, ordered = self.loops([buffer.size[d] for d in dims], "i")
        return axes, tuple(ordered[dims.index(d)] for d in range(len(buffer.size)))

    def reduction(
        self,
        size: tuple[Expr, ...],
        reduced: tuple[Expr, ...],
        kind: ReductionKind,
        read: ReadReduced,
        *,
        dtype: DType,
        accumulate: DType | None = None,
        after: Epilogue | None = None,
    ) -> Tensor:
        """Reduce ``read(index, reduction index)``; store ``after`` of the accumulator as ``dtype``.

        ``size`` is the shape of the result (with the reduced dimensions if the caller keeps them).
        ``accumulate`` is by default the accumulator of ``dtype``.
        """
        accumulate = accumulate or dtype.accumulator
        buffer = self.buffer(dtype, size)
        axes, index = self._loops_as_it_lies(buffer)
        reduction_axes, inner = self.loops(reduced, "r")
        value = upcast(self.finish(read(index, inner), (*axes, *reduction_axes)), accumulate)
        result = DType.I64 if kind in _ARG_KINDS else accumulate
        accumulator: Value = Accumulator(result)
        if after is not None:
            accumulator = self.finish(after(accumulator, index), axes)
        store = Store(buffer.name, index, upcast(accumulator, dtype), (self._name,))
        self.add(
            Reduction(
                self._fresh("op"), axes, reduction_axes, kind, value, accumulate, store, self.nodes
            )
        )
        return self.tensor(buffer)

    def scan(
        self, size: tuple[Expr, ...], dim: int, kind: ReductionKind, read: Reader, dtype: DType
    ) -> Tensor:
        """Scan with ``kind`` along ``dim``. A result that is one constant everywhere uses no
        memory."""
        outer_axes, _ = self.loops([e for d, e in enumerate(size) if d != dim], "i")
        scan_axis = Axis(variable("r", 0), size[dim])
        remaining_axes = iter(outer_axes)
        index = tuple(
            scan_axis.var if d == dim else _ZERO if extent == 1 else next(remaining_axes).var
            for d, extent in enumerate(size)
        )
        accumulate = dtype.accumulator
        value = upcast(self.finish(read(index), (*outer_axes, scan_axis)), accumulate)
        if isinstance(value, Const) and value.value in _CONSTANT_SCAN_VALUES.get(
            kind, (value.value,)
        ):
            constant = upcast(value, dtype)
            return Tensor(size, dtype, lambda _: constant, nodes=self.nodes)
        buffer = self.buffer(dtype, size)
        stored_value = upcast(Accumulator(accumulate), dtype)
        store = Store(buffer.name, index, stored_value, (self._name,))
        self.add(
            Scan(
                self._fresh("op"), outer_axes, scan_axis, kind, value, accumulate, store, self.nodes
            )
        )
        return self.tensor(buffer)

    def scatter(
        self,
        size: tuple[Expr, ...],
        dtype: DType,
        kind: ReductionKind,
        initial: Reader,
        sources: tuple[Expr, ...],
        places: Places,
        value: Reader,
        condition: Reader | None = None,
    ) -> Tensor:
        """Allocate a buffer of this shape, initialize it from ``initial``, and combine ``value`` at
        each point of ``sources`` into the element at ``places`` (where ``condition`` holds).

        A place given as a tree counts from the end if negative, and is always clamped to its
        dimension. ``dtype`` is one of ``operations.ATOMIC``; the caller combines f16, bf16 and
        small integers in a wider type (``lowering/scatter.py``).
        """
        buffer = self.buffer(dtype, size)
        axes, index = self.loops(size, "i")
        store = Store(buffer.name, index, self._held(initial(index), dtype, axes), (self._name,))
        loops, source = self.loops(sources, "s")
        indirect: list[Indirect] = []
        target: list[Expr] = []
        for position, extent in zip(places(source), size, strict=True):
            target_position = self._position(position, extent, loops)
            if isinstance(target_position, Indirect):
                indirect.append(target_position)
                target_position = target_position.symbol
            target.append(target_position)
        true = Const(True, DType.BOOL)
        self.add(
            Scatter(
                self._fresh("op"),
                axes,
                loops,
                kind,
                self._held(value(source), dtype, loops),
                true if condition is None else self.finish(condition(source), loops),
                tuple(indirect),
                tuple(target),
                store,
                self.nodes,
            )
        )
        return self.tensor(buffer)

    def _held(self, value: Value, dtype: DType, axes: Sequence[Axis]) -> Value:
        return upcast(self.finish(value, axes), dtype)

    def _position(
        self, position: Expr | Value, size: Expr, axes: Sequence[Axis]
    ) -> Expr | Indirect:
        """A position to write to; used unchanged if it is provably inside its dimension."""
        value = index_value(position) if isinstance(position, sympy.Expr) else position
        value = self.finish(value, axes)
        if isinstance(value, IndexValue):
            ranges = self.sizes.over(axes)
            if is_nonnegative(value.expr, ranges) and is_nonnegative(size - 1 - value.expr, ranges):
                return value.expr
        self._indirects += 1
        return Indirect(variable("ind", self._indirects - 1), value, size)

    def sort(
        self, tensor: Tensor, dim: int, *, descending: bool = False, limit: Expr | None = None
    ) -> tuple[Tensor, Tensor]:
        """Sort a tensor along ``dim``. Returns the values and their original indices along it
        (i64).

        Always stable, with NaN greatest. ``limit``: keep only the first elements of each sorted
        row.
        """
        extent = tensor.size[dim]
        size = (*tensor.size[:dim], extent if limit is None else limit, *tensor.size[dim + 1 :])
        if extent == 1 and size == tensor.size:
            zero = const(0, DType.I64)
            return self.realize(tensor), self.pointwise(size, DType.I64, lambda _: zero)
        outer_axes, _ = self.loops([e for d, e in enumerate(size) if d != dim], "i")
        axis, sorted_axis = Axis(variable("r", 0), extent), Axis(variable("p", 0), size[dim])

        def index_along(row_axis: Axis) -> Index:
            remaining_axes = iter(outer_axes)
            return tuple(
                row_axis.var if d == dim else _ZERO if e == 1 else next(remaining_axes).var
                for d, e in enumerate(size)
            )

        key = self.finish(tensor.at(index_along(axis)), (*outer_axes, axis))
        stores = []
        for dtype, name in ((tensor.dtype, "acc"), (DType.I64, Sort.INDEX)):
            buffer = self.buffer(dtype, size)
            result = upcast(Accumulator(dtype.compute_dtype, name), dtype)
            stores.append(Store(buffer.name, index_along(sorted_axis), result, (self._name,)))
        self.add(
            Sort(
                self._fresh("op"),
                outer_axes,
                axis,
                sorted_axis,
                trees.cast(key, tensor.dtype),
                descending,
                tuple(stores),
                self.nodes,
            )
        )
        values, indices = (self.tensor(self.buffers[store.buffer]) for store in stores)
        return values, indices

    def finish(self, value: Value, axes: Sequence[Axis]) -> Value:
        """A tree in the form that operations store: indices in normal form, calls tagged with the
        node."""
        return trees.tag_node(simplify_tree(value, self.sizes.over(axes)), self._name)

    @property
    def _name(self) -> str:
        node = self.outer or self.node
        return node.name if node else ""

    def operation_name(self) -> str:
        return self._fresh("op")

    def add(self, operation: Operation) -> None:
        self.operations.append(operation)

    def realize(self, tensor: Tensor, stride: Index | None = None) -> Tensor:
        """The tensor in a buffer; the tensor itself if it is a whole buffer already."""
        if tensor.buffer and stride is None:
            return tensor
        return self.pointwise(tensor.size, tensor.dtype, tensor.at, stride)

    # indices that are read from tensors

    def indirect(
        self, tensor: Tensor, index: Index, size: Expr, read: ReadAt, *, wrap: bool = True
    ) -> Value:
        """``read(position)`` at the position stored in an element of ``tensor``, along an axis of
        ``size`` (negative positions count from the end)."""
        value = tensor.at(index)
        if isinstance(value, IndexValue) and is_nonnegative(value.expr, self.sizes):
            return read(value.expr)
        if isinstance(value, Const) and int(value.value.real) >= 0:
            return read(sympy.Integer(int(value.value.real)))
        var = variable("ind", self._indirects)
        self._indirects += 1
        return bind_indirect(read(var), Indirect(var, value, size, wrap))


def bind_indirect(value: Value, indirect: Indirect) -> Value:
    """Add ``indirect`` to every load in the tree that uses its symbol."""

    def change(part: Value) -> Value | None:
        if isinstance(part, IndexValue) and part.expr.has(indirect.symbol):
            return trees.expr_tree(part.expr, {indirect.symbol: wrap_position(indirect)})
        if isinstance(part, Load):
            inner = tuple(replace(i, value=bind_indirect(i.value, indirect)) for i in part.indirect)
            if any(i.has(indirect.symbol) for i in part.index):
                inner = (*inner, indirect)
            return replace(part, indirect=inner)
        return None

    return rebuild(value, change)


def wrap_position(indirect: Indirect) -> Value:
    """The position as a value, with negative positions counted from the end."""
    value = upcast(indirect.value, DType.I64)
    if not indirect.wrap:
        return value
    return call("where", value < 0, value + index_value(indirect.size), value)


_ARG_KINDS = (ReductionKind.ARGMAX, ReductionKind.ARGMIN)
