"""A convolution, channels last, as an implicit product: as Triton's users write it, our own."""

import triton
import triton.language as tl


@triton.jit
def convolution(
    x, w, y, pixels, height, width, channels, filters,
    KH: tl.constexpr, KW: tl.constexpr, PAD: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """y[pixels, filters] of x[images, height, width, channels], w[filters, KH, KW, channels];
    stride 1; channels and filters are multiples of the tiles."""
    pid = tl.program_id(0)
    rows = tl.cdiv(pixels, BM)
    cols = tl.cdiv(filters, BN)
    group = pid // (GROUP * cols)
    first = group * GROUP
    size = min(rows - first, GROUP)
    i = (first + (pid % (GROUP * cols)) % size) * BM + tl.arange(0, BM)
    j = (pid % (GROUP * cols)) // size * BN + tl.arange(0, BN)
    t = tl.arange(0, BK)
    image = i // (height * width)
    at_row = i // width % height
    at_column = i % width
    acc = tl.zeros((BM, BN), tl.float32)
    steps = channels // BK
    for step in range(0, KH * KW * steps):
        tap = step // steps
        c = (step % steps) * BK + t
        r = at_row + tap // KW - PAD
        s = at_column + tap % KW - PAD
        inside = (r >= 0) & (r < height) & (s >= 0) & (s < width) & (i < pixels)
        px = x + (((image * height + r) * width + s) * channels)[:, None] + c[None, :]
        pw = w + (j * (KH * KW * channels) + tap * channels)[None, :] + c[:, None]
        acc = tl.dot(tl.load(px, mask=inside[:, None], other=0.0), tl.load(pw), acc)
    py = y + i[:, None] * filters + j[None, :]
    tl.store(py, acc.to(tl.float16), mask=(i < pixels)[:, None])
