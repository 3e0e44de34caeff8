"""Pointwise functions, norms, reductions and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch.export import Dim

from tests.benchmarks.gpu.problem import Of, Problem, beside_compile, beside_copy, exported

BOTH = ("rows", "columns")
_STATIC, _DYNAMIC, _REDUCED = 1.0, 0.8, 1.0  # of torch.compile's time


def of_rows(
    name: str,
    function: Callable[..., torch.Tensor],
    rows: int = 8192,
    columns: int = 4096,
    *,
    dynamic: Sequence[str] = (),
    inputs: int = 1,
) -> Problem:
    """Of matrices of the same shape, each read once, with one result as large. ``dynamic`` says
    which of the sizes are symbols."""
    axes = {
        place: Dim(axis, min=2, max=1 << 20) for place, axis in enumerate(BOTH) if axis in dynamic
    }
    moved = 2.0 * rows * columns * (inputs + 1)
    said = f", dynamic {' and '.join(dynamic)}" if dynamic else ""
    shapes = [(rows, columns)] * inputs
    return Problem(
        f"{name} {rows}x{columns}{said}",
        exported(lambda: Of(function), shapes, {"args": (axes,) * inputs} if dynamic else None),
        moved_bytes=moved,
        dynamic=bool(dynamic),
        bars=beside_compile(_DYNAMIC) if dynamic else beside_copy(_STATIC, moved),
        copied=True,
    )


def reduced(
    name: str,
    function: Callable[[torch.Tensor], torch.Tensor],
    shape: Sequence[int],
    *,
    dtype: torch.dtype = torch.bfloat16,
    written: bool = False,
    roundings: int = 0,
) -> Problem:
    """Of one input, read once; ``written``: with a result as large."""
    elements = 1
    for size in shape:
        elements *= size
    return Problem(
        f"{name} {'x'.join(map(str, shape))}{'' if dtype is torch.bfloat16 else ', f32'}",
        exported(lambda: Of(function), [shape], dtype=dtype),
        moved_bytes=float(dtype.itemsize) * elements * (2 if written else 1),
        bars=beside_compile(_REDUCED),
        roundings=roundings,
    )


def _silu(x: torch.Tensor) -> torch.Tensor:
    return F.silu(x) * 2 + x


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x, -1)


def _layer_norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (4096,))


def _rms(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (4096,))


def pointwise_and_rows() -> tuple[Problem, ...]:
    """Static, fused, and of dynamic sizes: odd ones too."""
    of = of_rows
    return (
        of("silu*2+x", _silu),
        of("silu*2+x", _silu, 16384, 8192),
        of("silu(x)*y", lambda x, y: F.silu(x) * y, inputs=2),
        of("softmax", _softmax),
        of("softmax(x/8+y)", lambda x, y: F.softmax(x * 0.125 + y, -1), inputs=2),
        of("layer norm", _layer_norm),
        of("layer norm of x+y", lambda x, y: F.layer_norm(x + y, (4096,)), inputs=2),
        of("RMS norm", _rms),
        of("RMS norm of x+y", lambda x, y: F.rms_norm(x + y, (4096,)), inputs=2),
        of("silu*2+x", _silu, dynamic=BOTH),
        of("silu*2+x", _silu, 16384, 8192, dynamic=BOTH),
        of("silu*2+x", _silu, 8191, 4099, dynamic=BOTH),
        of("softmax", _softmax, dynamic=BOTH),
        of("softmax", _softmax, 8191, 4099, dynamic=BOTH),
        of("layer norm", _layer_norm, dynamic=("rows",)),
        of("layer norm of x+y", _added_norm, 8191, 4099, dynamic=BOTH, inputs=2),
        of("RMS norm", _rms, dynamic=("rows",)),
        of("RMS norm", _rms, 16384, dynamic=("rows",)),
        of("RMS norm", _rms_of_any, 8191, 4099, dynamic=BOTH),
    )


def _added_norm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x + y, (x.shape[1],))


def _rms_of_any(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[1],))


def reductions() -> tuple[Problem, ...]:
    """Over columns, rows and everything, and a scan. The largest is looked for in f32, where no
    two are alike; a scan's parts are added in a tree, 24 levels for 16 M."""
    whole = 1 << 24
    single = torch.float32
    return (
        reduced("column sum", lambda x: x.sum(0), (8192, 4096)),
        reduced("column sum", lambda x: x.sum(0), (131072, 128)),
        reduced("sum to one", lambda x: x.sum(), (4096, 4096)),
        reduced("argmax", lambda x: x.argmax(-1), (8192, 4096), dtype=single),
        reduced("argmax of all", lambda x: x.argmax(), (4096, 4096), dtype=single),
        reduced("variance", lambda x: x.var(-1), (8192, 4096)),
        reduced("variance of all", lambda x: x.var(), (4096, 4096)),
        reduced(
            *("cumsum", lambda x: x.cumsum(0), (whole,)), dtype=single, written=True, roundings=96
        ),
    )
