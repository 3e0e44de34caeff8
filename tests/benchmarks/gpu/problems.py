"""The problems that are timed on a GPU: small torch modules with their example inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch.export import Dim


@dataclass(frozen=True)
class Problem:
    """``module`` and ``inputs`` are made on the GPU when asked for; ``dynamic`` names the axes of
    each input that are symbols (torch.export's ``dynamic_shapes``). ``flops`` and ``moved_bytes``
    are what the problem needs at least."""

    name: str
    module: Callable[[], torch.nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    flops: float = 0.0
    moved_bytes: float = 0.0
    dynamic: Any = None
    tags: frozenset[str] = field(default_factory=frozenset)


class Of(torch.nn.Module):
    """A module of a function."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self._function(*args)


class LinearGelu(torch.nn.Module):
    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(k, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


def _bf16(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def _on_gpu(module: torch.nn.Module) -> torch.nn.Module:
    return module.to("cuda", torch.bfloat16).eval()


def _linear(m: int, k: int, n: int) -> Problem:
    return Problem(
        f"linear+bias+gelu {m}x{k}x{n}",
        lambda: _on_gpu(LinearGelu(k, n)),
        lambda: (_bf16(m, k),),
        flops=2.0 * m * k * n,
        moved_bytes=2.0 * (m * k + k * n + m * n),
    )


def _attention(queries: int, keys: int, *, causal: bool) -> Problem:
    heads = (2, 16)
    half = 0.5 if causal else 1.0
    return Problem(
        f"attention 2x16x{keys}x128, {'causal' if causal else f'{queries} query'}",
        lambda: Of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)),
        lambda: (_bf16(*heads, queries, 128), _bf16(*heads, keys, 128), _bf16(*heads, keys, 128)),
        flops=half * 4.0 * 32 * queries * keys * 128,
        moved_bytes=2.0 * 32 * 128 * (2 * queries + 2 * keys),
    )


def _rows(
    name: str,
    function: Callable[..., torch.Tensor],
    *,
    rows: int,
    columns: int,
    moved: float,
    dynamic: bool = False,
    inputs: int = 1,
) -> Problem:
    axes = {0: Dim("rows", min=2, max=1 << 20), 1: Dim("columns", min=2, max=1 << 20)}
    return Problem(
        f"{name} {rows}x{columns}{', dynamic' if dynamic else ''}",
        lambda: Of(function),
        lambda: tuple(_bf16(rows, columns) for _ in range(inputs)),
        moved_bytes=moved,
        dynamic={"args": tuple(axes for _ in range(inputs))} if dynamic else None,
    )


def _silu(x: torch.Tensor) -> torch.Tensor:
    return F.silu(x) * 2 + x


def _rms(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (4096,))


def problems() -> tuple[Problem, ...]:
    """In the order in which they are shown."""
    r, c = 8192, 4096
    both = 4.0 * r * c
    return (
        _linear(4096, 4096, 4096),
        _linear(16, 4096, 14336),
        _attention(4096, 4096, causal=True),
        _attention(1, 4096, causal=False),
        Problem(
            "convolution 3x3, 32x256x56x56, 256 channels",
            lambda: _on_gpu(torch.nn.Conv2d(256, 256, 3, padding=1)),
            lambda: (_bf16(32, 256, 56, 56),),
            flops=2.0 * 32 * 56 * 56 * 256 * 256 * 9,
        ),
        _rows("silu*2+x", _silu, rows=r, columns=c, moved=both),
        _rows("silu*2+x", _silu, rows=r, columns=c, moved=both, dynamic=True),
        _rows("silu*2+x", _silu, rows=16384, columns=8192, moved=4 * both, dynamic=True),
        _rows("silu*2+x", _silu, rows=8191, columns=4099, moved=4.0 * 8191 * 4099, dynamic=True),
        _rows("softmax", lambda x: F.softmax(x, -1), rows=r, columns=c, moved=both),
        _rows("softmax", lambda x: F.softmax(x, -1), rows=r, columns=c, moved=both, dynamic=True),
        _rows("layer norm", lambda x: F.layer_norm(x, (c,)), rows=r, columns=c, moved=both),
        _rows("RMS norm", _rms, rows=r, columns=c, moved=both),
        _rows("column sum", lambda x: x.sum(0), rows=r, columns=c, moved=both / 2),
        _rows("sum to one", lambda x: x.sum(), rows=4096, columns=4096, moved=2.0 * 4096 * 4096),
    )
