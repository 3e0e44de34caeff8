"""Softmax, layer norm and gelu as Triton's users write them, by ourselves."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, rows, columns, R: tl.constexpr, B: tl.constexpr):
    """Of each row, R rows a program; a row fits into a block of B."""
    i = tl.program_id(0) * R + tl.arange(0, R)
    j = tl.arange(0, B)
    at = i[:, None] * columns + j[None, :]
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    value = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 1)[:, None])
    tl.store(y + at, (e / tl.sum(e, 1)[:, None]).to(tl.float16), mask=inside)


@triton.jit
def layer_norm(x, y, rows, columns, eps, R: tl.constexpr, B: tl.constexpr):
    """Of each row, without weights."""
    i = tl.program_id(0) * R + tl.arange(0, R)
    j = tl.arange(0, B)
    at = i[:, None] * columns + j[None, :]
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, 1) / columns
    away = tl.where(inside, value - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(away * away, 1) / columns + eps)
    tl.store(y + at, (away * scale[:, None]).to(tl.float16), mask=inside)


@triton.jit
def gelu(x, y, n, B: tl.constexpr, WHOLE: tl.constexpr):
    """Of each element; ``WHOLE`` where n is a multiple of B."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    value = (tl.load(x + i) if WHOLE else tl.load(x + i, mask=inside)).to(tl.float32)
    z = (0.5 * value * (1 + tl.math.erf(value * 0.7071067811865476))).to(tl.float16)
    if WHOLE:
        tl.store(y + i, z)
    else:
        tl.store(y + i, z, mask=inside)
