"""The problems that are timed on a GPU: small torch modules with their example inputs, and a whole
sample model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch.export import Dim

from scheduler import samples
from tests.benchmarks.gpu.samples import program_of


@dataclass(frozen=True)
class Loaded:
    """A problem on the GPU: what torch calls, with which inputs, and what Kiln reads; ``file`` is
    where that lies already, None where the program is still to be saved."""

    module: Any
    inputs: tuple[torch.Tensor, ...]
    program: Any
    file: Path | None = None


@dataclass(frozen=True)
class Problem:
    """``load`` makes it on the GPU. ``flops`` and ``moved_bytes`` are what it needs at least;
    ``dynamic`` says that it has symbolic sizes."""

    name: str
    load: Callable[[], Loaded]
    flops: float = 0.0
    moved_bytes: float = 0.0
    dynamic: bool = False


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


def _exported(
    module: Callable[[], torch.nn.Module], shapes: Sequence[Sequence[int]], dynamic: Any = None
) -> Callable[[], Loaded]:
    """A module in bf16 with inputs of these shapes; ``dynamic`` as torch.export's
    ``dynamic_shapes``."""

    def load() -> Loaded:
        made = module().to("cuda", torch.bfloat16).eval()
        inputs = tuple(_bf16(*shape) for shape in shapes)
        return Loaded(made, inputs, torch.export.export(made, inputs, dynamic_shapes=dynamic))

    return load


def _linear(m: int, k: int, n: int) -> Problem:
    return Problem(
        f"linear+bias+gelu {m}x{k}x{n}",
        _exported(lambda: LinearGelu(k, n), [(m, k)]),
        flops=2.0 * m * k * n,
        moved_bytes=2.0 * (m * k + k * n + m * n),
    )


def _attention(queries: int, keys: int, *, causal: bool) -> Problem:
    batch, heads, depth = 2, 16, 128
    q, kv = (batch, heads, queries, depth), (batch, heads, keys, depth)
    half = 0.5 if causal else 1.0
    return Problem(
        f"attention 2x16x{keys}x128, {'causal' if causal else f'{queries} query'}",
        _exported(
            lambda: Of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)),
            [q, kv, kv],
        ),
        flops=half * 4.0 * batch * heads * queries * keys * depth,
        moved_bytes=2.0 * batch * heads * depth * (2 * queries + 2 * keys),
    )


def _convolution() -> Problem:
    images, channels, size = 32, 256, 56
    elements = images * channels * size**2
    return Problem(
        "convolution 3x3, 32x256x56x56, 256 channels",
        _exported(
            lambda: torch.nn.Conv2d(channels, channels, 3, padding=1),
            [(images, channels, size, size)],
        ),
        flops=2.0 * elements * channels * 9,
        moved_bytes=2.0 * (2 * elements + 9 * channels**2),
    )


def _pointwise_or_rows(
    name: str,
    function: Callable[..., torch.Tensor],
    *,
    rows: int = 8192,
    columns: int = 4096,
    dynamic: str = "",
    reduced: bool = False,
) -> Problem:
    """Of one input of rows and columns, read once, written once where it is not ``reduced``.
    ``dynamic`` says which of its sizes are symbols."""
    axes = {
        place: Dim(axis, min=2, max=1 << 20)
        for place, axis in enumerate(("rows", "columns"))
        if axis in dynamic
    }
    return Problem(
        f"{name} {rows}x{columns}{', dynamic ' if dynamic else ''}{dynamic}",
        _exported(
            lambda: Of(function), [(rows, columns)], {"args": ((axes),)} if dynamic else None
        ),
        moved_bytes=2.0 * rows * columns * (1 if reduced else 2),
        dynamic=bool(dynamic),
    )


def _gpt2() -> Problem:
    batch, length, width, layers, words = 4, 1024, 768, 12, 50257
    file = samples.path("gpt2_124m")

    def load() -> Loaded:
        inputs = (torch.randint(0, words, (batch, length), device="cuda"),)
        # With its number: tensors of torch.compile have one, and the program compares them.
        program = program_of(file, inputs, "cuda:0")
        return Loaded(program.module(), inputs, program, file)

    tokens, weights = batch * length, layers * 12 * width**2 + words * width
    return Problem(
        f"gpt2_124m whole, {batch}x{length}, f16",
        load,
        flops=2.0 * tokens * weights + layers * 2.0 * batch * length**2 * width,
    )


def _silu(x: torch.Tensor) -> torch.Tensor:
    return F.silu(x) * 2 + x


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x, -1)


def _layer_norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (4096,))


def _rms(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (4096,))


def problems() -> tuple[Problem, ...]:
    """In the order in which they are shown."""
    of, both = _pointwise_or_rows, "rows and columns"
    return (
        _linear(4096, 4096, 4096),
        _linear(16, 4096, 14336),
        _attention(4096, 4096, causal=True),
        _attention(1, 4096, causal=False),
        _convolution(),
        of("silu*2+x", _silu),
        of("silu*2+x", _silu, dynamic=both),
        of("silu*2+x", _silu, rows=16384, columns=8192, dynamic=both),
        of("silu*2+x", _silu, rows=8191, columns=4099, dynamic=both),
        of("softmax", _softmax),
        of("softmax", _softmax, dynamic=both),
        of("layer norm", _layer_norm),
        of("layer norm", _layer_norm, dynamic="rows"),
        of("RMS norm", _rms, dynamic="rows"),
        of("RMS norm", _rms, rows=16384, dynamic="rows"),
        of("column sum", lambda x: x.sum(0), reduced=True),
        of("sum to one", lambda x: x.sum(), rows=4096, reduced=True),
        _gpt2(),
    )
