"""Channels-last memory layout of tensors around convolutions, and which convolutions gain from it.

A window reads neighbouring channels of one position 16 bytes at a time; with the channels a whole
image apart, as models are written, it reads single elements. Other inputs of a convolution that
gains are first copied into that layout; values of the graph take it directly
(``channels_last_regions``), as in Inductor's layout optimisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, TensorMeta
from scheduler.ir.index.simplify import product
from scheduler.lowering import layout
from scheduler.lowering.builder import Builder
from scheduler.lowering.tensor import Tensor

Shaped: TypeAlias = TensorMeta | Tensor

_DTYPES = (DType.F16, DType.BF16, DType.F32)
#: Bytes of channels of one position that are read at once; and a lower minimum for groups, whose
#: kernel would read single elements in the other layout as well.
_PACK_BYTES, _GROUP_PACK_BYTES = 16, 8
#: Fewer positions do not pay for the copy of the weight, which is made on each run.
_MIN_POSITIONS = 256


def channels_last_strides(size: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Channels-last strides of [N, C, ...]."""
    dims = [d for d in (0, *range(2, len(size)), 1) if size[d] != 1]
    return layout.permuted_strides(size, dims)


def is_profitable(
    input: Shaped, weight: Shaped, output: tuple[Expr, ...], groups: int, hints: Mapping[str, int]
) -> bool:
    """Whether a convolution with these operands reads whole packs of a group's channels, more than
    once, for enough positions."""
    rank = len(weight.size)
    if input.dtype not in _DTYPES or rank < 3 or {len(input.size), len(output)} != {rank}:
        return False
    taps, channels = product(weight.size[2:]), weight.size[1]
    if not (channels.is_Integer and taps.is_Integer):
        return False
    positions = product((output[0], *output[2:]))
    pack_bytes = _PACK_BYTES if groups == 1 else _GROUP_PACK_BYTES
    has_whole_packs = int(channels) * input.dtype.itemsize % pack_bytes == 0
    return (
        has_whole_packs and int(taps) > 1 and layout.size_hint(positions, hints) >= _MIN_POSITIONS
    )


def to_channels_last(b: Builder, tensor: Tensor) -> Tensor:
    """The tensor in channels-last memory, copied if necessary."""
    if tensor.buffer:
        buffer = b.buffers[tensor.buffer]
        if layout.is_same_layout(buffer.size, buffer.stride, channels_last_strides(buffer.size)):
            return tensor
    return b.realize(tensor, channels_last_strides(tensor.size))
