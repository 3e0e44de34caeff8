"""The source of gemm-*.hsaco: a product of matrices as Triton's users write it, by ourselves.
``make_gemm.py`` compiles it."""

import triton
import triton.language as tl


@triton.jit
def gemm(
    a, b, c, m, n, k, lda, ldb, ldc,
    TRANSPOSED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """c[m, n] = a[m, k] @ b[k, n], or @ b[n, k] transposed; sizes are multiples of the tiles."""
    pid = tl.program_id(0)
    rows = tl.cdiv(m, BM)
    cols = tl.cdiv(n, BN)
    group = pid // (GROUP * cols)
    first = group * GROUP
    size = min(rows - first, GROUP)
    row = first + (pid % (GROUP * cols)) % size
    col = (pid % (GROUP * cols)) // size
    i = row * BM + tl.arange(0, BM)
    j = col * BN + tl.arange(0, BN)
    t = tl.arange(0, BK)
    pa = a + i[:, None] * lda + t[None, :]
    if TRANSPOSED:  # noqa: SIM108 -- one of both is compiled
        pb = b + t[:, None] + j[None, :] * ldb
    else:
        pb = b + t[:, None] * ldb + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK if TRANSPOSED else BK * ldb
    tl.store(c + i[:, None] * ldc + j[None, :], acc.to(tl.float16))
