# ruff: noqa: ARG001 - rules have the signature of their op
"""scaled_dot_product_attention as one template operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, unbacked_sizes, variable
from scheduler.ir.index.simplify import product as extent_of
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import Attention, Axis, ReductionKind, Store
from scheduler.ir.values import Accumulator, Const, Value, call, const, index_value, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.attention_masks import bound_mask
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.matmul import Epilogue, product
from scheduler.lowering.random import native_dropout
from scheduler.lowering.reductions import reduce, sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast, transpose

# Maximum bytes of a row of q, k or v. 64 KiB of shared memory hold 32 rows of q, the weights, and
# 32 rows each of k and v; with wider elements, 16 rows, k and v one after the other.
_MAX_ROW_BYTES = 512
_MAX_DEEP_ROW_BYTES = 1024
# With tiles of 16 keys a kernel takes 3 times as long as two products and a softmax (gfx942, 1,024
# rows, modelled), so it is used only if the scores would need more memory than this.
_MIN_SCORES_BYTES = 2**31


def attention(
    b: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    meta = b.output_meta()
    if not meta.dtype.is_float:
        raise Unsupported("attention of integers is not supported")
    if query.size[-1] == 0:
        raise Unsupported("attention with a head dimension of 0 is not supported")
    leading = meta.size[:-2]
    if enable_gqa:
        key, value = _repeat_heads(key, leading), _repeat_heads(value, leading)
    q, k, v = (broadcast(x, (*leading, *x.size[-2:])) for x in (query, key, value))
    score_size = (*leading, q.size[-2], k.size[-2])
    fits_one_kernel = is_one_kernel(q.dtype, score_size, (q.size[-1], v.size[-1]), b.hints)
    if dropout_p or not fits_one_kernel:
        # The scores are in memory: heads too deep for tiles or of symbolic depth, or dropout.
        compute_dtype = meta.dtype.compute_dtype
        score_tensor = compute_scores(
            b, q, k, attn_mask, is_causal, scale, score_size, compute_dtype
        )
        weights = softmax_weights(b, score_tensor, meta.dtype)
        if dropout_p:
            weights, _ = native_dropout(b, weights, dropout_p)
        return product(b, "attention", weights, v, meta.size, meta.dtype, None)
    if scale is None:
        scale = 1 / math.sqrt(int(query.size[-1]))
    batch, index = b.loops(leading, "b")
    row, column = Axis(variable("q", 0), q.size[-2]), Axis(variable("c", 0), k.size[-2])
    depth, value_depth = Axis(variable("d", 0), q.size[-1]), Axis(variable("e", 0), v.size[-1])
    axes = (*batch, row, column, depth, value_depth)
    mask = None if attn_mask is None else _mask(b, attn_mask, leading, index, row, column)
    assert b.node is not None
    is_output = b.node.outputs[0] in b.graph.outputs  # which keeps the graph's strides
    strides = None if is_output else rows_first_strides(meta.size)
    buffer = b.buffer(meta.dtype, meta.size, strides)
    result_index = (*index, row.var, value_depth.var)
    compute_dtype = meta.dtype.compute_dtype
    store_ranges = b.sizes.over((row, value_depth))
    store = Store(
        buffer.name,
        tuple(simplify(i, store_ranges) for i in result_index),
        upcast(Accumulator(compute_dtype), meta.dtype),
        b.nodes,
    )
    b.add(
        Attention(
            b.operation_name(),
            batch,
            row,
            column,
            depth,
            value_depth,
            b.finish(_typed(q, (*index, row.var, depth.var)), axes),
            b.finish(_typed(k, (*index, column.var, depth.var)), axes),
            b.finish(_typed(v, (*index, column.var, value_depth.var)), axes),
            None if mask is None else b.finish(mask, axes),
            bool(is_causal),
            float(scale),
            (store,),
            b.nodes,
        )
    )
    return b.tensor(buffer)


def is_one_kernel(
    dtype: DType, scores: tuple[Expr, ...], depths: tuple[Expr, ...], hints: Mapping[str, int]
) -> bool:
    """Whether the template supports these head depths and is preferable for this many scores."""
    if not all(depth.is_Integer for depth in depths):
        return False
    row_bytes = max(int(depth) for depth in depths) * dtype.itemsize
    if row_bytes <= _MAX_ROW_BYTES:
        return True
    if dtype.itemsize < DType.F32.itemsize or row_bytes > _MAX_DEEP_ROW_BYTES:
        return False
    if any(unbacked_sizes(extent) for extent in scores):
        return False
    return (
        layout.size_hint(extent_of(scores), hints) * dtype.compute_dtype.itemsize
        > _MIN_SCORES_BYTES
    )


def compute_scores(
    b: Builder,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    """The scaled and masked scores, of shape ``size``, in memory."""
    epilogue = score_epilogue(scale, query.size[-1], is_causal, mask, size, dtype)
    transposed_key = transpose(key, key.rank - 2, key.rank - 1)
    return product(b, "attention scores", query, transposed_key, size, dtype, epilogue)


def score_epilogue(
    scale: float | None,
    depth: Expr,
    is_causal: bool,
    attn_mask: Tensor | None,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Epilogue:
    """The epilogue that turns products of queries and keys into scores of shape ``size``: it scales
    them and masks them with -inf."""

    def scored(accumulator: Value, index: Index) -> Value:
        value = accumulator * softmax_scale(scale, depth, dtype)
        if is_causal:
            row, column = index[-2:]
            value = call("where", index_value(column) <= index_value(row), value, -math.inf)
        if attn_mask is None:
            return value
        mask = broadcast(attn_mask, size).at(index)
        if attn_mask.dtype is DType.BOOL:
            return call("where", mask, value, -math.inf)
        return value + upcast(mask, dtype)

    return scored


def softmax_scale(scale: float | None, depth: Expr, dtype: DType) -> Value:
    if scale is not None:
        return const(scale, dtype)
    return call("rsqrt", upcast(index_value(depth), dtype))


def exp_scores(b: Builder, scores: Tensor) -> tuple[Tensor, Callable[[Value, Index], Value]]:
    """The maximum score of each row (0 if all are -inf), and a function for exp(score -
    maximum)."""
    compute_dtype = scores.dtype

    def finite(acc: Value, _: Index) -> Value:
        return call("where", call("isinf", acc), 0, acc)

    dims = (scores.rank - 1,)
    maximum = reduce(b, scores, dims, ReductionKind.MAX, dtype=compute_dtype, after=finite)

    def exp_shifted(value: Value, index: Index) -> Value:
        return call("exp", value - maximum.at((*index[:-1], sympy.Integer(0))))

    return maximum, exp_shifted


def softmax_weights(b: Builder, scores: Tensor, dtype: DType) -> Tensor:
    """softmax over the last dimension. A row of only -inf gives 0, as in torch's attention."""
    compute_dtype = scores.dtype
    _, exp_shifted = exp_scores(b, scores)

    def not_zero(acc: Value, _: Index) -> Value:
        return call("where", call("eq", acc, 0), 1, acc)

    total = sum_over(
        b, scores, (scores.rank - 1,), dtype=compute_dtype, before=exp_shifted, after=not_zero
    )

    def read(index: Index) -> Value:
        divisor = total.at((*index[:-1], sympy.Integer(0)))
        return exp_shifted(scores.at(index), index) / divisor

    return b.pointwise(scores.size, dtype, read)


def _typed(tensor: Tensor, index: Index) -> Value:
    """An element in the tensor's own type. Computed elements (ones, a mask) are held in f32."""
    value = tensor.at(index)
    return value if value.dtype is tensor.dtype else trees.cast(value, tensor.dtype)


def _mask(
    b: Builder, mask: Tensor, leading: tuple[Expr, ...], index: Index, row: Axis, column: Axis
) -> Value | None:
    """The mask's tree; None if it selects everything."""
    broadcast_mask = broadcast(mask, (*leading, row.size, column.size))
    value = broadcast_mask.at((*index, row.var, column.var))
    if isinstance(value, Const):
        keeps_all = bool(value.value) if mask.dtype is DType.BOOL else value.value == 0
        if keeps_all:
            return None
    return value if mask.dtype is DType.BOOL else bound_mask(value)


def _repeat_heads(tensor: Tensor, leading: tuple[Expr, ...]) -> Tensor:
    """Grouped queries: repeat each head of ``tensor`` for consecutive heads of the query."""
    heads, key_heads = leading[-1], tensor.size[-3]
    repeats = simplify(FloorDiv(heads, key_heads))
    size = (*tensor.size[:-3], heads, *tensor.size[-2:])
    return tensor.view(size, lambda i: (*i[:-3], FloorDiv(i[-3], repeats), *i[-2:]))


def rows_first_strides(size: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """Strides with rows before heads in memory, the order for readers that concatenate the heads;
    None if there are no heads."""
    rank = len(size)
    if rank < 4:
        return None
    order = [*range(rank - 3), rank - 2, rank - 3, rank - 1]
    return layout.permuted_strides(size, [d for d in order if size[d] != sympy.Integer(1)])
