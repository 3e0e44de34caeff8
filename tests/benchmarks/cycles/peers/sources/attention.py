"""Attention by online softmax as Triton's users write it, by ourselves."""

import triton
import triton.language as tl


@triton.jit
def _inner(
    acc, total, m, q, pk, pv, start, end, i, skd, sv, scale,
    BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The keys from ``start`` to ``end``, masked to those up to the row where they are MASKED."""
    j = tl.arange(0, BN)
    pk += start * skd
    pv += start * sv
    for at in range(start, end, BN):
        s = tl.dot(q, tl.load(pk)) * scale
        if MASKED:
            s = tl.where(i[:, None] >= (at + j)[None, :], s, -1.0e6)
        most = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - most[:, None])
        alpha = tl.math.exp2(m - most)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(tl.float16), tl.load(pv), acc)
        m = most
        pk += BN * skd
        pv += BN * sv
    return acc, total, m


@triton.jit
def causal(
    q, k, v, o, length, sh, sr, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """o[h, length, D] of q, k, v[h, length, D]; ``scale`` is of exponents of 2. Blocks of most
    keys begin first."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1) * sh
    i = block * BM + tl.arange(0, BM)
    j = tl.arange(0, BN)
    d = tl.arange(0, D)
    pk = k + head + j[None, :] * sr + d[:, None]
    pv = v + head + j[:, None] * sr + d[None, :]
    x = tl.load(q + head + i[:, None] * sr + d[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    m = tl.full((BM,), -1.0e6, tl.float32)
    acc, total, m = _inner(acc, total, m, x, pk, pv, 0, block * BM, i, sr, sr, scale, BM, BN, False)
    acc, total, m = _inner(
        acc, total, m, x, pk, pv, block * BM, (block + 1) * BM, i, sr, sr, scale, BM, BN, True
    )
    y = acc / total[:, None]
    tl.store(o + head + i[:, None] * sr + d[None, :], y.to(tl.float16))


@triton.jit
def decode(
    q, k, v, parts, sums, most, length, sh, scale,
    D: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """One query a head over its part of the keys: parts[h, SPLIT, D], sums and most[h, SPLIT]."""
    head, part = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    j = tl.arange(0, BN)
    x = tl.load(q + head * D + d).to(tl.float32) * scale
    own = length // SPLIT
    at = head * sh + (part * own + j)[:, None] * D + d[None, :]
    m = -1.0e6
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for _ in range(0, own, BN):
        s = tl.sum(tl.load(k + at).to(tl.float32) * x[None, :], 1)
        now = tl.maximum(m, tl.max(s, 0))
        p = tl.math.exp2(s - now)
        alpha = tl.math.exp2(m - now)
        total = total * alpha + tl.sum(p, 0)
        acc = acc * alpha + tl.sum(tl.load(v + at).to(tl.float32) * p[:, None], 0)
        m = now
        at += BN * D
    place = head * SPLIT + part
    tl.store(parts + place * D + d, acc)
    tl.store(sums + place, total)
    tl.store(most + place, m)


@triton.jit
def combine(parts, sums, most, o, D: tl.constexpr, SPLIT: tl.constexpr):
    """o[h, D] of what ``decode`` wrote."""
    head = tl.program_id(0)
    d = tl.arange(0, D)
    s = tl.arange(0, SPLIT)
    m = tl.load(most + head * SPLIT + s)
    weight = tl.math.exp2(m - tl.max(m, 0))
    whole = tl.sum(weight * tl.load(sums + head * SPLIT + s), 0)
    all_parts = tl.load(parts + (head * SPLIT + s)[:, None] * D + d[None, :])
    y = tl.sum(all_parts * weight[:, None], 0) / whole
    tl.store(o + head * D + d, y.to(tl.float16))
