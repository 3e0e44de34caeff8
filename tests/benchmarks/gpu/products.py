"""Products of matrices, attention and convolutions: modules in bf16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from tests.benchmarks.gpu.problem import Of, Problem, beside_compile, exported
from tests.benchmarks.gpu.results import COMPILE, CUTEDSL, KILN, Bar


class LinearGelu(torch.nn.Module):
    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(k, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


def linear(m: int, n: int, k: int, *, large: bool = False) -> Problem:
    """A linear layer of ``k`` to ``n`` features over ``m`` rows. The large ones are held language
    by language: mma.sync, which HIP's kernels use, has two thirds of the rate."""
    both = (Bar(COMPILE, 1.0, (CUTEDSL,)), Bar(COMPILE, 1.5, (KILN,)))
    return Problem(
        f"linear+bias+gelu {m}x{n}x{k}",
        exported(lambda: LinearGelu(k, n), [(m, k)]),
        flops=2.0 * m * k * n,
        moved_bytes=2.0 * (m * k + k * n + m * n),
        bars=both if large else beside_compile(1.0),
    )


@dataclass(frozen=True)
class Heads:
    """``batch`` times ``queries`` heads, over as many ``keys`` heads, of ``depth``."""

    batch: int
    queries: int
    keys: int
    depth: int = 128

    @property
    def title(self) -> str:
        shared = "" if self.keys == self.queries else f"/{self.keys}"
        return f"{self.batch}x{self.queries}{shared}"


MANY = Heads(2, 16, 16)
GROUPED = Heads(1, 32, 8)


def attention(heads: Heads, length: int, *, window: int = 0) -> Problem:
    """Causal; of a ``window`` each query sees so many keys at most."""
    seen = min(window, length) if window else length / 2
    what = f", window {window}" if window else ""
    return _attention(
        f"attention {heads.title}x{length}x{heads.depth}, causal{what}",
        *(heads, length, length, seen),
        _windowed(window) if window else _causal,
    )


def masked(heads: Heads, length: int) -> Problem:
    """With a mask that is added, an input."""
    return _attention(
        f"attention {heads.title}x{length}x{heads.depth}, additive mask",
        *(heads, length, length, length),
        F.scaled_dot_product_attention,
        mask=True,
    )


def decode(heads: Heads, keys: int) -> Problem:
    """One query."""
    return _attention(
        f"attention {heads.title}x{keys}x{heads.depth}, 1 query",
        *(heads, 1, keys, keys),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        at_most=1.1,
    )


def _attention(
    name: str,
    heads: Heads,
    queries: int,
    keys: int,
    seen: float,
    function: Callable[..., torch.Tensor],
    *,
    at_most: float = 1.5,
    mask: bool = False,
) -> Problem:
    q = (heads.batch, heads.queries, queries, heads.depth)
    kv = (heads.batch, heads.keys, keys, heads.depth)
    elements = 2 * heads.queries * queries + 2 * heads.keys * keys
    return Problem(
        name,
        exported(lambda: Of(function), [q, kv, kv, *([(queries, keys)] if mask else [])]),
        flops=4.0 * heads.batch * heads.queries * queries * seen * heads.depth,
        moved_bytes=2.0 * (heads.batch * heads.depth * elements + mask * queries * keys),
        bars=beside_compile(at_most),
    )


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def _windowed(window: int) -> Callable[..., torch.Tensor]:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        row = torch.arange(q.shape[-2], device=q.device)[:, None]
        column = torch.arange(k.shape[-2], device=q.device)[None, :]
        mask = (column <= row) & (row - column < window)
        return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)

    return function


def convolution(
    side: int,
    channels: int,
    filters: int,
    kernel: int,
    *,
    depthwise: bool = False,
    last: bool = False,
) -> Problem:
    """Of 32 images, stride 1, as large as they were; ``last``: channels last."""
    images, groups = 32, channels if depthwise else 1
    weights = filters * channels // groups * kernel**2
    read, written = images * channels * side**2, images * filters * side**2
    title = "depthwise" if depthwise else "convolution"
    return Problem(
        f"{title} {kernel}x{kernel}, {images}x{channels}x{side}x{side}, {filters} filters"
        f"{', channels last' if last else ''}",
        exported(
            lambda: torch.nn.Conv2d(channels, filters, kernel, padding=kernel // 2, groups=groups),
            [(images, channels, side, side)],
            layout=torch.channels_last if last else torch.contiguous_format,
        ),
        flops=2.0 * images * side**2 * weights,
        moved_bytes=2.0 * (read + written + weights),
        bars=beside_compile(1.3),
    )


def products() -> tuple[Problem, ...]:
    """In the order in which they are shown."""
    return (
        linear(4096, 4096, 4096, large=True),
        linear(8192, 8192, 8192, large=True),
        linear(2048, 14336, 4096, large=True),
        *(linear(rows, 14336, 4096) for rows in (1, 16, 64)),
        linear(16, 4096, 14336),
        linear(64, 1024, 16384),
        linear(256, 256, 16384),
        attention(MANY, 4096),
        attention(GROUPED, 4096),
        attention(MANY, 4096, window=1024),
        masked(MANY, 4096),
        *(decode(MANY, keys) for keys in (4096, 16384, 131072)),
        decode(GROUPED, 65536),
    )


def convolutions() -> tuple[Problem, ...]:
    """In both layouts."""
    return tuple(
        convolution(side, channels, filters, kernel, depthwise=depthwise, last=last)
        for side, channels, filters, kernel, depthwise in (
            (56, 256, 256, 3, False),
            (56, 64, 256, 1, False),
            (56, 128, 128, 7, True),
        )
        for last in (False, True)
    )
