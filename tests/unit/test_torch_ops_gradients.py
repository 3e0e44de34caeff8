"""Normalisation by the batch's statistics, and gradients: the reference against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional
aten = torch.ops.aten


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(7))


SPECIAL = torch.tensor(
    [0.0, -0.0, 3.0, -3.0, 6.0, 0.5, -0.5, 1.0, -1.0, 40.0, -40.0, 0.3, math.nan],
    dtype=torch.double,
)


def test_gradients_of_activations(tmp_path: Path) -> None:
    functions = [
        *(aten.silu_backward, aten.mish_backward, aten.hardswish_backward, aten.gelu_backward),
        *(aten.hardsigmoid_backward, aten.sigmoid_backward, aten.tanh_backward),
        lambda g, x: aten.gelu_backward(g, x, approximate="tanh"),
        lambda g, x: aten.threshold_backward(g, x, 0),
        lambda g, x: aten.threshold_backward(g, x, 0.5),
        lambda g, x: aten.hardtanh_backward(g, x, 0.0, 6.0),
        lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False),
        lambda g, x: aten.elu_backward(g, 1.5, 1.1, 0.9, False, x),
        lambda g, x: aten.elu_backward(g, 1.5, 1.1, 0.9, True, x),
        lambda g, x: aten.softplus_backward(g, x, 2.0, 3.0),
        lambda g, x: aten.log_sigmoid_backward(g, x, torch.exp(-x.abs())),
        lambda g, x: aten.hardshrink_backward(g, x, 0.5),
        lambda g, x: aten.softshrink_backward(g, x, 0.5),
        lambda g, x: aten.logit_backward(g, x, 0.2),
        lambda g, x: aten.logit_backward(g, x.abs()),  # at -0.0 torch's two kernels differ
        lambda g, x: aten.rrelu_with_noise_backward(g, x, g + 1, 0.1, 0.3, True, False),
        lambda g, x: aten.rrelu_with_noise_backward(g, x, g + 1, 0.1, 0.3, False, False),
        lambda g, x: aten._prelu_kernel_backward(g, x, 0.1 * g),
    ]

    def every(x: Any, special: Any) -> Any:
        made = []
        for function in functions:
            for value in (x, special):
                out = function(
                    torch.cos(torch.arange(value.numel()).reshape(value.shape) + x.sum()), value
                )
                made += list(out) if isinstance(out, tuple) else [out]
        made.append(aten.glu_backward(x[:, :2], x, 1))
        return tuple(made)

    agree(as_module(every), (_randn(3, 4, 5), SPECIAL), tmp_path)


def test_gradients_of_softmax_and_losses(tmp_path: Path) -> None:
    def every(x: Any, target: Any, weight: Any, scalar: Any) -> Any:
        y, g = torch.softmax(x, 1), torch.sin(x)
        image, places = x[..., None].repeat(1, 1, 1, 2), target[:, None, None].repeat(1, 5, 2)
        one = x[0, :, 0]
        total = weight.sum()
        return (
            aten._softmax_backward_data(g, y, 1, torch.float64),
            aten._log_softmax_backward_data(g, torch.log(y), -1, torch.float64),
            aten._softmax_backward_data(g, y, 0, torch.float64),
            aten.nll_loss_backward(x[:, 0, 0], x[..., 0], target, None, 0, -100, total),
            aten.nll_loss_backward(scalar, x[..., 0], target, weight, 1, 2, total),
            aten.nll_loss_backward(scalar, x[..., 0], target, None, 2, 2, total),
            aten.nll_loss_backward(scalar, one, target[0], weight, 1, -100, total),
            aten.nll_loss2d_backward(scalar, image, places, weight, 1, 0, total),
            aten.nll_loss2d_backward(image[:, 0], image, places, None, 0, 0, total),
        )

    target = torch.tensor([0, 2, 3])
    args = (
        _randn(3, 4, 5),
        target,
        torch.rand(4, dtype=torch.double) + 0.5,
        torch.tensor(1.5).double(),
    )
    agree(as_module(every), args, tmp_path)


def test_statistics_of_the_batch(tmp_path: Path) -> None:
    def every(x: Any, w: Any, mean: Any, var: Any) -> Any:
        legit = aten._native_batch_norm_legit_functional
        return (
            *legit(x, w, mean, mean, var, True, 0.1, 1e-5),
            *legit(x, None, None, mean, var, True, 0.3, 1e-3),
            *aten.native_batch_norm(x[:, :, 0, 0], w, None, None, None, True, 0.1, 1e-5),
            *aten._native_batch_norm_legit.no_stats(x, w, mean, True, 0.1, 1e-5),
            aten.native_batch_norm(x, w, mean, mean, var, False, 0.1, 1e-5)[0],
            *aten._batch_norm_with_update_functional(x, w, mean, mean, var, 0.2, 1e-4),
            aten._batch_norm_no_update(x, w, mean, mean, var, 0.2, 1e-4)[0],
            F.batch_norm(x, None, None, w, mean, training=True),
            F.instance_norm(x, None, None, w, mean),
            *aten._fused_rms_norm(x, [5, 3], x[0, 0], 1e-5),
        )

    w = torch.rand(4, dtype=torch.double) + 0.5
    agree(as_module(every), (_randn(2, 4, 5, 3), w, _randn(4), w * 2), tmp_path)


def _rms_norm_backward(*args: Any) -> Any:
    """torch has no kernel of it for the CPU: beside it runs torch's own decomposition."""
    if torch.compiler.is_exporting():
        return aten._fused_rms_norm_backward(*args)
    return torch._decomp.decomposition_table[aten._fused_rms_norm_backward.default](*args)


def test_gradients_of_normalisations(tmp_path: Path) -> None:
    every_one = [True, True, True]

    def every(x: Any, w: Any, mean: Any, var: Any) -> Any:
        g = torch.sin(3 * x)
        _, m, r = aten.native_batch_norm(x, w, mean, None, None, True, 0.1, 1e-5)
        flat = x.reshape(2, 4, 15)
        weight = x[0, 0]
        _, lm, lr = aten.native_layer_norm(x, [5, 3], weight, None, 1e-5)
        _, gm, gr = aten.native_group_norm(x, w, None, 2, 4, 15, 2, 1e-5)
        _, rr = aten._fused_rms_norm(x, [5, 3], weight, 1e-5)
        bn = aten.native_batch_norm_backward
        ln = aten.native_layer_norm_backward
        gn = aten.native_group_norm_backward
        return (
            *bn(g, x, w, mean, var, m, r, True, 1e-5, every_one),
            *bn(g, x, None, mean, var, m, r, True, 1e-5, [True, False, False])[:1],
            *bn(g, x, w, mean, var, None, None, False, 1e-5, every_one),
            *bn(g.flatten(2), flat, w, None, None, m, r, True, 1e-5, every_one),
            *ln(g, x, [5, 3], lm, lr, weight, weight, every_one),
            ln(g, x, [5, 3], lm, lr, weight, None, [True, False, False])[0],
            ln(g, x, [5, 3], lm, lr, None, None, [True, False, False])[0],
            *gn(g, x, gm, gr, w, 2, 4, 15, 2, every_one),
            gn(g, x, gm, gr, None, 2, 4, 15, 2, [True, False, False])[0],
            *_rms_norm_backward(g, x, [5, 3], rr, weight, [True, True]),
        )

    w = torch.rand(4, dtype=torch.double) + 0.5
    agree(as_module(every), (_randn(2, 4, 5, 3), w, _randn(4), w * 2), tmp_path)
