"""Numbers that kernels compute from their sizes, or read from another kernel's result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.support.exported_kernels import assert_close, outputs_of  # noqa: E402
from tests.unit.torch_export import as_module, export, inputs_of  # noqa: E402


def test_kernels_compute_what_torch_does(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        s = x.shape[0]
        most = x.abs().max().item()
        return (
            x * s**-0.5 + s / 3,
            torch.full((2,), s * 0.5) * (2**s),
            x * torch.sym_ite(s > 5, 4, 9) + torch.sym_max(s, 7),
            x / most,
            torch.where(x > 0, x, (x > 0).sum().item() - s),
            torch.arange(0, s / 2, 0.5) * most,
            (s + 1) / 8,
        )

    module = as_module(f)
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    dynamic = {"dynamic_shapes": (({0: torch.export.Dim.AUTO},),)}
    program, graph = export(module, (x,), tmp_path, **dynamic)
    got = outputs_of(graph, inputs_of(program, graph, (x,)))
    for name, expected in zip(graph.outputs, module(x), strict=True):
        assert_close(got[name], torch.as_tensor(expected), 1e-6, name)
