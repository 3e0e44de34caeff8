# ruff: noqa: ARG001 - rules have the signature of their op
"""Reflection and replication padding, their gradients, and max unpooling, which writes back to
where an element came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, index_value, upcast
from scheduler.lowering import layout
from scheduler.lowering.builder import Builder
from scheduler.lowering.concat import pad_op, source_index
from scheduler.lowering.creation import full
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.scatter import Sources, combine, overwrite
from scheduler.lowering.tensor import Index, Tensor


def pad(mode: str) -> Callable[..., Tensor]:
    """reflection_pad and replication_pad of any rank."""

    def rule(b: Builder, self: Tensor, padding: tuple[Any, ...]) -> Tensor:
        return pad_op(b, self, padding, mode)

    return rule


def pad_backward(mode: str) -> Callable[..., Tensor]:
    """Add every element's gradient to the element that it was copied from."""

    def rule(b: Builder, grad_output: Tensor, self: Tensor, padding: tuple[Any, ...]) -> Tensor:
        meta = b.output_meta()
        source_places = source_index(self, grad_output.size, padding, mode)
        sources = Sources(grad_output.size, source_places, grad_output.at)
        base = full(meta.size, 0, meta.dtype)
        return materialize(b, combine(b, base, ReductionKind.SUM, sources))

    return rule


def max_unpool(rank: int) -> Callable[..., Tensor]:
    """Zeros except at the flat positions ``indices`` in each plane; the last of several writes
    wins."""

    def rule(b: Builder, self: Tensor, indices: Tensor, output_size: Any, **_: Any) -> Tensor:
        meta = b.output_meta()
        leading_rank = self.rank - rank
        plane = meta.size[leading_rank:]
        strides = layout.contiguous_strides(plane)

        def target_position(source: Index) -> tuple[Expr | Value, ...]:
            flat = upcast(indices.at(source), DType.I64)
            position: list[Expr | Value] = list(source[:leading_rank])
            for extent, stride in zip(plane, strides, strict=True):
                quotient = flat if stride == 1 else call("floordiv", flat, index_value(stride))
                position.append(call("remainder", quotient, index_value(extent)))
            return tuple(position)

        base = full(meta.size, 0, meta.dtype)
        written_dims = tuple(range(self.rank))
        return materialize(
            b,
            overwrite(
                b,
                base,
                written_dims,
                self.size,
                target_position,
                lambda source, _target: self.at(source),
            ),
        )

    return rule
