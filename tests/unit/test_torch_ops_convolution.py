"""Convolutions of every form and their gradients: the reference against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("decompose", [False, True])
def test_transposed_convolutions(tmp_path: Path, decompose: bool) -> None:
    x, w = _randn(2, 4, 5, 3), _randn(4, 3, 4, 3)

    def every(x: Any, w: Any, i: Any) -> Any:
        bias = w[0, :, 0, 0]
        return (
            F.conv_transpose2d(x, w, bias),
            F.conv_transpose2d(x, w, bias, stride=2, padding=1),
            F.conv_transpose2d(x, w[:, :, :2, :2], stride=2),
            F.conv_transpose2d(x, w, stride=(3, 2), padding=(2, 0), output_padding=(1, 0)),
            F.conv_transpose2d(x, w, stride=(2, 1), padding=1, dilation=(3, 2)),
            F.conv_transpose2d(x, w, w[0, :, 0, 0].repeat(2), stride=2, padding=1, groups=2),
            F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1, groups=4),
            F.conv_transpose2d(x[0], w[:, :, 1:, 1:], bias, stride=4, padding=1, output_padding=2),
            F.conv_transpose2d(x.to(memory_format=torch.channels_last), w, stride=2),
            F.conv_transpose1d(x[..., 0], w[..., 0], bias, stride=2, padding=3),
            F.conv_transpose3d(x[..., None], w[..., None], stride=(2, 1, 2), padding=(1, 0, 0)),
            F.conv_transpose2d(i, i[:, :, :2, :2], stride=2),
        )

    i = torch.arange(4 * 4 * 3 * 3).reshape(4, 4, 3, 3) % 7 - 3
    agree(as_module(every), (x, w, i), tmp_path, decompose=decompose)


def test_convolutions_by_their_other_names(tmp_path: Path) -> None:
    x, w = _randn(2, 6, 9, 8), _randn(12, 3, 3, 2)
    aten = torch.ops.aten

    def every(x: Any, w: Any, i: Any) -> Any:
        bias = w[:, 0, 0, 0]
        ends = (False, False, True, True)
        return (
            aten._convolution(x, w, bias, [2, 1], [1, 2], [1, 1], False, [0, 0], 2, *ends),
            aten._convolution(x, w[:6], None, [2, 1], [1, 0], [1, 1], True, [1, 0], 2, *ends[1:]),
            F.conv1d(x[..., 0], w[:, :, :, 0], padding="same", groups=2, dilation=2),
            F.conv2d(x[0], w, padding="valid", groups=2),
            F.conv3d(x[:, :3, :, :, None], w[..., None], padding="same"),
            F.conv2d(i, i[:, :2, :2, :2], stride=2, groups=2),
        )

    i = torch.arange(4 * 4 * 3 * 3).reshape(4, 4, 3, 3) % 7 - 3
    agree(as_module(every), (x, w, i), tmp_path)


def test_gradients_of_convolutions(tmp_path: Path) -> None:
    x, w = _randn(2, 4, 7, 5), _randn(6, 4, 3, 2)
    cases = [
        ((1, 1), (0, 0), (1, 1), False, (0, 0), 1),
        ((2, 3), (1, 1), (1, 1), False, (0, 0), 1),
        ((2, 1), (2, 1), (2, 2), False, (0, 0), 2),
        ((2, 1), (1, 0), (1, 2), False, (0, 0), 4),
        ((2, 1), (1, 0), (1, 1), True, (1, 0), 1),
        ((3, 2), (0, 1), (1, 1), True, (1, 1), 2),
        ((2, 2), (1, 1), (2, 1), True, (0, 0), 4),
    ]

    def every(x: Any, w: Any) -> Any:
        made: list[Any] = []
        for number, (stride, padding, dilation, transposed, more, groups) in enumerate(cases):
            if transposed:
                weight = w[:4]
            else:
                weight = (w if groups < 4 else w.repeat(2, 1, 1, 1)[:8])[:, : 4 // groups]
            form = (stride, padding, dilation, transposed, more, groups)
            out = torch.ops.aten.convolution(x, weight, None, *form)
            grad = torch.sin(out)
            mask = [number != 2, number != 3, number % 2 == 0]
            back = torch.ops.aten.convolution_backward(grad, x, weight, [out.shape[1]], *form, mask)
            made += [one for one, asked in zip(back, mask, strict=True) if asked]
        return tuple(made)

    agree(as_module(every), (x, w), tmp_path)
