"""Means and variances of f32 whose elements are far from zero: as near to float64 as torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.build.flags import DEFAULT_FLAGS
from tests.support.caches import KEPT
from tests.support.exported_kernels import CPU
from tests.support.models_as_kernels import compile_all, prepare, run
from tests.unit.torch_export import as_module, export, inputs_of

torch = pytest.importorskip("torch")
F = torch.nn.functional
ROWS = 16
_ROUNDED = 2.0**-23  # relative, of a result that is rounded to f32 once or twice


def statistics(x: Any) -> Any:
    return (*torch.var_mean(x, 1), x.std(1), x.var(1, correction=0))


def normalized(x: Any) -> Any:
    channels = x.reshape(2, ROWS // 2, -1)
    return (
        F.layer_norm(x, (x.shape[1],)),
        F.group_norm(channels, 2),
        F.batch_norm(channels, None, None, training=True),
        F.instance_norm(channels),
    )


def kernels_of(function: Callable[..., Any], columns: int, folder: Path) -> Callable[[Any], Any]:
    """The function by its kernels, compiled once for many inputs."""
    example = torch.zeros(ROWS, columns)
    program, graph = export(as_module(function), (example,), folder)
    prepared = prepare(graph, CPU)
    library = compile_all([prepared], CPU, KEPT, DEFAULT_FLAGS)

    def computed(x: Any) -> list[Any]:
        made = run(prepared, library, CPU, inputs_of(program, graph, (x,)), {})
        return [made[name] for name in graph.outputs]

    return computed


def inputs(columns: int) -> Iterator[Any]:
    """Rows about means up to 1e7; what f32 cannot tell from its mean is left out."""
    generator = torch.Generator().manual_seed(columns)
    for mean in (0.0, -3.0, 1e3, 1e4, -1e5, 1e6, 1e7):
        for scale in (1.0, 0.1, 1e-3):
            if abs(mean) * _ROUNDED < scale:
                yield torch.randn(ROWS, columns, generator=generator) * scale + mean


SIZES = [
    pytest.param(n, marks=pytest.mark.full if n != 257 else ()) for n in (2, 257, 3000, 100_000)
]


@pytest.mark.parametrize("columns", SIZES)
def test_statistics_are_rounded_once(columns: int, tmp_path: Path) -> None:
    """torch's are computed in double precision; so are these."""
    computed = kernels_of(statistics, columns, tmp_path)
    for x in inputs(columns):
        for got, own, exact in zip(computed(x), statistics(x), statistics(x.double()), strict=True):
            error = np.abs(got - exact.numpy())
            allowed = 2 * (own.double() - exact).abs().numpy() + _ROUNDED * exact.abs().numpy()
            assert (error <= allowed + 1e-14 * float(x.abs().max())).all(), x[0, 0]


@pytest.mark.parametrize("columns", SIZES)
def test_normalised_rows_are_as_near_as_torchs(columns: int, tmp_path: Path) -> None:
    """But for a mean's rounding to f32, which moves a row by up to half a unit in the mean's last
    place: by chance nearly nothing in torch, nearly all of it here, or the other way."""
    computed = kernels_of(normalized, columns, tmp_path)
    for x in inputs(columns):
        half = float(np.spacing(np.float32(x.abs().max()))) / 2
        of_mean = half / float(x.double().std(1, correction=0).min() + 1e-30)
        for got, own, exact in zip(computed(x), normalized(x), normalized(x.double()), strict=True):
            error = float(np.sqrt(np.mean((got - exact.numpy()) ** 2)))
            of_torch = float((own.double() - exact).square().mean().sqrt())
            assert error <= 2 * of_torch + 2 * _ROUNDED + of_mean, x[0, 0]


def test_no_square_is_infinite_where_the_variance_is_not(tmp_path: Path) -> None:
    """Means and distances beyond 1.8e19, whose squares f32 does not hold."""
    computed = kernels_of(statistics, 257, tmp_path)
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(ROWS, 257, generator=generator)
    for mean, scale in ((1e20, 1e13), (-3e30, 1e17), (0.0, 1.5e19), (5e19, 1e19), (1e36, 1.0)):
        x = noise * scale + mean
        for got, own in zip(computed(x), statistics(x), strict=True):
            assert np.isfinite(own.numpy()).all()
            np.testing.assert_allclose(got, own.numpy(), rtol=1e-6, atol=1e-9 * abs(mean))
