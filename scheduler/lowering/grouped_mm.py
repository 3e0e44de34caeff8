"""Products of groups of rows with one matrix per group, as in a mixture of experts.

The group of each row is computed once; the products are sums along k that read the group's matrix.
Matrix instructions are not used, because a tile of rows may span several groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import reductions, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.matmul import matmul
from scheduler.lowering.tensor import Index, Tensor


def rows_by_group(b: Builder, input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """[S, K] x [E, K, N] → [S, N]: rows up to ``offs[e]`` times matrix e; rows without a group give
    0."""
    return _multiply_groups(b, input, weight, _row_groups(b, offs, input.size[0]), lambda i: i)


def grouped_mm(
    b: Builder,
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,  # noqa: ARG001 - the graph says the result's type
) -> Tensor:
    if bias is not None:
        raise Unsupported("a bias in grouped_mm is not supported")
    if self.rank == mat2.rank == 3:
        return matmul(b, "grouped_mm", self, mat2)
    if offs is None:
        raise Unsupported("grouped_mm without group offsets is not supported")
    if mat2.rank == 3:
        return _multiply_groups(b, self, mat2, _row_groups(b, offs, self.size[0]), lambda i: i)
    if self.rank == 3:
        columns, matrices = _transpose(mat2), _transpose(self)
        groups = _row_groups(b, offs, columns.size[0])
        return _multiply_groups(b, columns, matrices, groups, lambda i: i[::-1])
    return _sums_by_group(b, self, mat2, _row_groups(b, offs, mat2.size[0]))


def _transpose(tensor: Tensor) -> Tensor:
    *leading, rows, columns = tensor.size
    return tensor.view((*leading, columns, rows), lambda i: (*i[:-2], i[-1], i[-2]))


def _row_groups(b: Builder, offs: Tensor, rows: Expr) -> Tensor:
    """[rows]: the number of groups that end at or before each row, which is the row's group
    number."""

    def read(index: Index, inner: Index) -> Value:
        group_end = upcast(offs.at(inner), DType.I64)
        is_after = group_end <= upcast(index_value(index[0]), DType.I64)
        return upcast(is_after, DType.I64)

    return b.reduction((rows,), offs.size, ReductionKind.SUM, read, dtype=DType.I64)


def _multiply_groups(
    b: Builder, x: Tensor, y: Tensor, groups: Tensor, row_and_column: Callable[[Index], Any]
) -> Tensor:
    """Multiply x [S, K] by the matrix of each row's group in y [E, K, N]; ``row_and_column`` maps
    the index of the result to [S, N]."""
    meta = b.output_meta()
    accumulate_dtype = reductions.accumulator_dtype(meta.dtype)
    group_count = y.size[0]

    def read(index: Index, reduced_index: Index) -> Value:
        row, column = row_and_column(index)
        group = groups.at((row,))
        is_in_group = group < upcast(index_value(group_count), DType.I64)
        weight = b.indirect(
            groups,
            (row,),
            group_count,
            lambda expert: y.at((expert, reduced_index[0], column)),
            wrap=False,
        )
        product = call(
            "mul", *(upcast(v, accumulate_dtype) for v in (x.at((row, *reduced_index)), weight))
        )
        return trees.masked_value(is_in_group, product, const(0, accumulate_dtype))

    return b.reduction(
        meta.size,
        (x.size[1],),
        ReductionKind.SUM,
        read,
        dtype=meta.dtype,
        accumulate=accumulate_dtype,
    )


def _sums_by_group(b: Builder, x: Tensor, y: Tensor, groups: Tensor) -> Tensor:
    """x [M, K] times y [K, N] → [E, M, N], each summed over the k of its group."""
    meta = b.output_meta()
    accumulate_dtype = reductions.accumulator_dtype(meta.dtype)

    def read(index: Index, reduced_index: Index) -> Value:
        group, row, column = index
        is_own_group = call("eq", groups.at(reduced_index), upcast(index_value(group), DType.I64))
        factors = (x.at((row, *reduced_index)), y.at((*reduced_index, column)))
        product = call("mul", *(upcast(value, accumulate_dtype) for value in factors))
        return trees.masked_value(is_own_group, product, const(0, accumulate_dtype))

    return b.reduction(
        meta.size,
        (x.size[1],),
        ReductionKind.SUM,
        read,
        dtype=meta.dtype,
        accumulate=accumulate_dtype,
    )
