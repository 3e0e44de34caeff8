"""Ops of torch's own graphs through lowering, fusion, rendering and the compiler, beside torch.

Each is there for what its kernels have to do that no sample's do: windows seen from their other
side, positions that are computed, several results of one op.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.build.flags import DEFAULT_FLAGS
from tests.support.caches import KEPT
from tests.support.exported_kernels import CPU, assert_kernels_agree, outputs_of
from tests.support.models_as_kernels import compile_all, prepare, run
from tests.unit.torch_export import as_module, export, inputs_of

torch = pytest.importorskip("torch")
F = torch.nn.functional


def _randn(*size: int) -> Any:
    return torch.randn(*size, generator=torch.Generator().manual_seed(5))


def transposed_convolutions(x: Any, w: Any) -> Any:
    return (
        torch.relu(F.conv_transpose2d(x, w, w[0, :, 0, 0], stride=2, padding=1)),
        F.conv_transpose2d(x, w[:, :, :2, :2], stride=2, padding=(0, 1), groups=2),
        F.conv_transpose2d(x, w, stride=(3, 1), dilation=(1, 2)),
        F.conv_transpose2d(x, w, stride=2, padding=1, groups=4),
    )


def gradients_of_a_convolution(x: Any, w: Any) -> Any:
    form = ([2, 1], [1, 0], [1, 1], False, [0, 0], 1)
    weight = w.transpose(0, 1)
    out = torch.sin(torch.ops.aten.convolution(x, weight, None, *form))
    return torch.ops.aten.convolution_backward(out, x, weight, [3], *form, [True, True, True])


def statistics_of_the_batch(x: Any, w: Any) -> Any:
    channels = w[:, 0, 0, 0]
    return torch.ops.aten._native_batch_norm_legit_functional(
        x, channels, channels, channels, channels**2, True, 0.1, 1e-5
    )


def gradients_of_normalisations(x: Any, w: Any) -> Any:
    aten, channels = torch.ops.aten, w[:, 0, 0, 0]
    out, mean, inverse = aten.native_batch_norm(x, channels, None, None, None, True, 0.1, 1e-5)
    _, row_mean, row_inverse = aten.native_layer_norm(x, [6], None, None, 1e-5)
    grad, every = torch.sin(out), [True, True, True]
    saved = (None, None, mean, inverse)
    return (
        *aten.native_batch_norm_backward(grad, x, channels, *saved, True, 1e-5, every),
        *aten.native_layer_norm_backward(
            grad, x, [6], row_mean, row_inverse, x[0, 0, 0], x[0, 0, 1], every
        ),
    )


def gradients_of_poolings(x: Any) -> Any:
    aten = torch.ops.aten
    average = ([3, 2], [2, 1], [1, 0], False, False, None)
    window = ([3, 2], [2, 1], [1, 0], [1, 2], True)
    out, places = aten.max_pool2d_with_indices(x, *window)
    return (
        places,
        aten.avg_pool2d_backward(torch.sin(aten.avg_pool2d(x, *average)), x, *average),
        aten.max_pool2d_with_indices_backward(torch.cos(out), x, *window, places),
        aten._adaptive_avg_pool2d_backward(torch.sin(x[..., :3, :4]), x),
    )


def resampling(x: Any) -> Any:
    back = torch.ops.aten.upsample_bilinear2d_backward
    return (
        F.interpolate(x, size=(7, 13), mode="nearest"),
        F.interpolate(x, scale_factor=1.7, mode="nearest-exact"),
        F.interpolate(x, size=(3, 13), mode="bilinear"),
        F.interpolate(x, size=(9, 4), mode="bicubic", align_corners=True),
        F.interpolate(x, size=(3, 13), mode="bicubic", antialias=True),
        back(torch.sin(x), [5, 6], [2, 4, 3, 4], False),
    )


def nearest_pixels_of_a_symbolic_size(x: Any) -> Any:
    return F.interpolate(x, size=(49, 13), mode="nearest")


def gradients_of_attention(q: Any, k: Any, v: Any) -> Any:
    aten = torch.ops.aten
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)
    back = aten._scaled_dot_product_flash_attention_for_cpu_backward
    return sums, *back(torch.sin(out), q, k, v, out, sums, 0.0, True)


def recurrent_layer(x: Any, first: Any, weight: Any, recurrent: Any) -> Any:
    weights = [weight, recurrent, weight[:, 0], weight[:, 1]]
    out, hidden, cell = torch.lstm(
        x, [first, torch.cos(first)], weights, True, 1, 0.0, False, False, True
    )
    gated, _ = torch.gru(x, first, [w[:12] for w in weights], True, 1, 0.0, False, False, False)
    return out, hidden, cell, gated


def samples_at_a_grid(x: Any, grid: Any) -> Any:
    form = {"align_corners": False}
    return (
        F.grid_sample(x, grid, **form),
        F.grid_sample(x, grid, mode="bicubic", padding_mode="reflection", **form),
        F.grid_sample(x, grid, mode="nearest", padding_mode="border", align_corners=True),
        F.fold(F.unfold(x, (3, 2), padding=1, stride=2), (5, 6), (3, 2), padding=1, stride=2),
        torch.ops.aten.reflection_pad2d_backward(x, x[..., :4, :4], [1, 1, 1, 0]),
    )


X = _randn(2, 4, 5, 6)
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (transposed_convolutions, (X, _randn(4, 3, 4, 3))),
    (gradients_of_a_convolution, (X, _randn(4, 3, 3, 3))),
    (gradients_of_poolings, (X,)),
    (resampling, (X,)),
    (gradients_of_attention, (_randn(1, 2, 5, 8), _randn(1, 2, 7, 8), _randn(1, 2, 7, 8))),
    (recurrent_layer, (_randn(3, 3, 5), _randn(1, 3, 4), _randn(16, 5), _randn(16, 4))),
    (samples_at_a_grid, (X, 1.5 * _randn(2, 3, 4, 2))),
    (statistics_of_the_batch, (X, _randn(4, 3, 4, 3))),
    (gradients_of_normalisations, (X, _randn(4, 3, 4, 3))),
]


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize(("function", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_kernels_give_what_torch_gives(
    function: Callable[..., Any], args: tuple[Any, ...], tmp_path: Path
) -> None:
    assert_kernels_agree(function, args, tmp_path, relative=2e-5, others=("gfx942",))


def test_pixels_of_a_symbolic_size_are_found_as_torch_finds_them(tmp_path: Path) -> None:
    """Their places are computed while the model runs, rounded to float32 as torch does."""
    x = _randn(1, 2, 7, 9)
    shapes = (({2: torch.export.Dim("height", min=2, max=80)},),)
    module = as_module(nearest_pixels_of_a_symbolic_size)
    program, graph = export(module, (x,), tmp_path, dynamic_shapes=shapes)
    (got,) = outputs_of(graph, inputs_of(program, graph, (x,))).values()
    np.testing.assert_array_equal(got, module(x).numpy())


def test_a_variance_is_a_number_however_large_a_mean_is(tmp_path: Path) -> None:
    """Of rows that several blocks share: each begins with what it knows of nothing."""
    args = (torch.full((2, 24 * 1024), 1e20),)
    program, graph = export(as_module(lambda x: torch.var(x, -1)), args, tmp_path)
    (got,) = outputs_of(graph, inputs_of(program, graph, args)).values()
    assert (np.sqrt(got) <= 1e20 * 2.0**-20).all(), got


@pytest.mark.full(but=["torch.float32-median"])
@pytest.mark.parametrize("function", [torch.median, torch.nanmedian])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_a_median_of_what_is_empty_when_it_runs(function: Any, dtype: Any, tmp_path: Path) -> None:
    """Nothing is read: it is NaN as in torch, of integers 0."""
    sizes = {dim: torch.export.Dim(name, min=0, max=64) for dim, name in enumerate("mn")}
    args = (torch.ones(3, 10, dtype=dtype),)
    program, graph = export(as_module(function), args, tmp_path, dynamic_shapes=((sizes,),))
    prepared = prepare(graph, CPU)
    library = compile_all([prepared], CPU, KEPT, DEFAULT_FLAGS)
    empty = inputs_of(program, graph, (torch.ones(2, 0, dtype=dtype),))
    rows, columns = (size.name for size in graph.tensors[graph.inputs[0].name].size)
    (got,) = run(prepared, library, CPU, empty, {rows: 2, columns: 0}).values()
    assert np.isnan(got) if dtype.is_floating_point else got == 0


def test_rows_are_merged_in_indices_that_hold_twice_as_many(tmp_path: Path) -> None:
    for most, index in ((1 << 30, "int32_t"), (1_200_000_000, "int64_t")):
        columns = {0: torch.export.Dim("n", min=2, max=most)}
        args = (torch.ones(5000, dtype=torch.int8),)
        module = as_module(lambda x: torch.sort(x).values)
        _, graph = export(module, args, tmp_path, dynamic_shapes=((columns,),))
        (kernel,) = prepare(graph, CPU).generated.kernels
        assert f"using index_t = {index};" in kernel.source
