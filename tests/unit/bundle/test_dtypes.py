"""Small exported models of each element type, as bundles: every kernel and the whole graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.benchmark.verification import verify
from tests.support.exported_kernels import bundle_of
from tests.unit.torch_export import as_module, export

torch = pytest.importorskip("torch")


def unsigned(codes: Any, table: Any) -> Any:
    return table[codes.to(torch.int64)] * codes[:, None].float() + (codes & 3)[:, None].float()


class ScaledLinear(torch.nn.Module):
    """A linear layer whose input and weights are rounded to 8 bits, with their scales."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(3))
        self.register_buffer("scale", weight.abs().amax() / 448)
        self.register_buffer("weight", (weight / self.scale).to(torch.float8_e4m3fn))

    def forward(self, x: Any) -> Any:
        scale = x.abs().amax(-1, keepdim=True) / 448
        narrow = (x / scale).to(torch.float8_e4m3fn)
        columns = self.scale.expand(1, 32).contiguous()
        return torch._scaled_mm(narrow, self.weight.t(), scale, columns, out_dtype=torch.float32)


def rotated(q: Any, k: Any, turns: Any) -> Any:
    def turn(x: Any) -> Any:
        numbers = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(numbers * turns).flatten(2)

    return turn(q) @ turn(k).transpose(1, 2) + (turns.conj() * turns).sum().real


def filtered(x: Any, weight: Any) -> Any:
    """As a layer that mixes by frequencies has it: transforms with kernels between them."""
    return torch.fft.irfft(torch.fft.rfft(x, dim=1) * weight, n=x.shape[1], dim=1) + x


MODELS = {
    "complex64": (
        rotated,
        (torch.randn(2, 5, 8), torch.randn(2, 5, 8), torch.randn(5, 4, dtype=torch.cfloat)),
    ),
    "fourier": (filtered, (torch.randn(3, 8, 4), torch.randn(5, 4, dtype=torch.cfloat))),
    "uint16": (unsigned, (torch.arange(8).to(torch.uint16), torch.randn(40, 6))),
    "float8": (ScaledLinear(), (torch.randn(16, 64),)),
}


EXTERNS = {"fourier": ["aten.fft_rfft.default", "aten.fft_irfft.default"]}


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_and_the_whole_graph_are_right(name: str, tmp_path: Path) -> None:
    model, args = MODELS[name]
    module = model if isinstance(model, torch.nn.Module) else as_module(model)
    _, graph = export(module, args, tmp_path)
    bundle = bundle_of(graph, tmp_path / "bundle")
    assert [extern.op for extern in bundle.manifest.externs] == EXTERNS.get(name, [])
    findings = verify(bundle, "cpu", {})
    assert [finding for finding in findings if not finding.passed] == []
    assert findings[-1].name == "whole graph"


@pytest.mark.parametrize("name", [name for name in MODELS if name not in EXTERNS])
def test_the_wrapper_runs_alone_on_values_of_its_own(name: str, tmp_path: Path) -> None:
    model, args = MODELS[name]
    module = model if isinstance(model, torch.nn.Module) else as_module(model)
    _, graph = export(module, args, tmp_path)
    bundle_of(graph, tmp_path / "bundle")
    wrapper, results = tmp_path / "bundle" / "wrapper.py", tmp_path / "results.npz"
    subprocess.run([sys.executable, wrapper, "--outputs", results], check=True)
    with np.load(results) as outputs:
        assert [np.isfinite(outputs[name]).all() for name in outputs.files] == [True]
