"""Products of matrices as Triton's users write them, by ourselves: tiles, few rows, one row."""

import triton
import triton.language as tl


@triton.jit
def gemm(
    a, b, bias, c, m, n, k, lda, ldb, ldc,
    TRANSPOSED: tl.constexpr, GELU: tl.constexpr, BIAS: tl.constexpr, MASKED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """c[m, n] = a[m, k] @ b[k, n] (or @ b[n, k] transposed) + bias, its gelu; of SPLIT parts of k
    each into f32 c[SPLIT, m, n]. n and k are multiples of the tiles, m is unless MASKED."""
    pid = tl.program_id(0)
    rows = tl.cdiv(m, BM)
    cols = tl.cdiv(n, BN)
    group = pid // (GROUP * cols)
    first = group * GROUP
    size = min(rows - first, GROUP)
    row = first + (pid % (GROUP * cols)) % size
    col = (pid % (GROUP * cols)) // size
    part = tl.program_id(1)
    i = row * BM + tl.arange(0, BM)
    j = col * BN + tl.arange(0, BN)
    t = part * (k // SPLIT) + tl.arange(0, BK)
    # Rows beyond the last are read again: nothing of them is stored.
    pa = a + (i % m if MASKED else i)[:, None] * lda + t[None, :]
    if TRANSPOSED:  # noqa: SIM108 -- one of both is compiled
        pb = b + t[:, None] + j[None, :] * ldb
    else:
        pb = b + t[:, None] * ldb + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k // SPLIT, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK if TRANSPOSED else BK * ldb
    if BIAS:
        acc += tl.load(bias + j).to(tl.float32)[None, :]
    if GELU:
        acc = 0.5 * acc * (1 + tl.math.erf(acc * 0.7071067811865476))
    pc = c + part * m * n + i[:, None] * ldc + j[None, :]
    value = acc if SPLIT > 1 else acc.to(tl.float16)
    if MASKED:
        tl.store(pc, value, mask=i[:, None] < m)
    else:
        tl.store(pc, value)


@triton.jit
def row(a, b, bias, c, n, k, ldb, BN: tl.constexpr, BK: tl.constexpr):
    """c[n] = b[n, k] @ a[k] + bias."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    t = tl.arange(0, BK)
    acc = tl.zeros((BN, BK), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a + start + t).to(tl.float32)
        w = tl.load(b + j[:, None] * ldb + (start + t)[None, :]).to(tl.float32)
        acc += w * x[None, :]
    tl.store(c + j, (tl.sum(acc, 1) + tl.load(bias + j).to(tl.float32)).to(tl.float16))


@triton.jit
def add_parts(parts, bias, c, n, count, SPLIT: tl.constexpr, B: tl.constexpr):
    """c[count] = the sum of f32 parts[SPLIT, count] + bias[count % n]."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.load(bias + i % n).to(tl.float32)
    for part in tl.static_range(SPLIT):
        acc += tl.load(parts + part * count + i)
    tl.store(c + i, acc.to(tl.float16))
