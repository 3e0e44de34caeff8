"""Attention as torch's kernels have it, and its gradients: the reference against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
aten = torch.ops.aten


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(6))


def test_attention_with_sums_and_its_gradients(tmp_path: Path) -> None:
    forward = aten._scaled_dot_product_flash_attention_for_cpu
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward

    def every(q: Any, k: Any, v: Any, mask: Any) -> Any:
        made: list[Any] = []
        for causal, options in (
            (False, {}),
            (True, {}),
            (False, {"attn_mask": mask}),
            (False, {"scale": 0.3}),
        ):
            out, sums = forward(q, k, v, 0.0, causal, **options)
            grad = torch.sin(3 * out)
            made += [out, sums, *backward(grad, q, k, v, out, sums, 0.0, causal, **options)]
        made += aten._scaled_dot_product_attention_math(q, k, v, mask)
        return tuple(made)

    mask = torch.zeros(1, 1, 5, 7, dtype=torch.double)
    mask[..., 2:4, 3:] = -math.inf
    args = (_randn(2, 3, 5, 8), _randn(2, 3, 7, 8), _randn(2, 3, 7, 8), mask)
    agree(as_module(every), args, tmp_path)


def test_additive_masks_may_hide_a_row_by_the_least_number_of_their_type(tmp_path: Path) -> None:
    def both(q: Any, k: Any, v: Any) -> Any:
        made = []
        for dtype in (torch.float32, torch.float64):
            mask = torch.zeros(5, 7, dtype=dtype)
            mask[1], mask[2, :4] = torch.finfo(dtype).min, torch.finfo(dtype).min
            parts = (part.to(dtype) for part in (q, k, v))
            made.append(torch.nn.functional.scaled_dot_product_attention(*parts, mask))
        return tuple(made)

    agree(as_module(both), (_randn(2, 3, 5, 8), _randn(2, 3, 7, 8), _randn(2, 3, 7, 8)), tmp_path)
