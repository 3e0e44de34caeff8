"""Whole models, exported by torch here and now, read back and run beside torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.reference import random_inputs, run
from tests.unit.torch_export import agree, as_module, export, inputs_of

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Block(nn.Module):  # type: ignore[misc]
    """A decoder block with rotary embedding, grouped queries and a gated feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm2 = nn.RMSNorm(32, eps=1e-6), nn.LayerNorm(32)
        self.q, self.kv = nn.Linear(32, 32, bias=False), nn.Linear(32, 32)
        self.gate, self.down = nn.Linear(32, 96), nn.Linear(48, 32)
        self.register_buffer("frequency", 1 / 10000 ** (torch.arange(0, 8, 2) / 8).double())

    def rotate(self, x: Any) -> Any:
        with torch.no_grad():
            angle = torch.outer(torch.arange(x.shape[2]), self.frequency)
            angle = torch.cat([angle, angle], -1)
        first, second = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-second, first], -1) * angle.sin()

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        h = self.norm(x)
        q = self.q(h).view(batch, length, 4, 8).transpose(1, 2)
        k, v = self.kv(h).view(batch, length, 2, 2, 8).permute(2, 0, 3, 1, 4)
        q, k = self.rotate(q), self.rotate(k)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + attended.transpose(1, 2).reshape(batch, length, -1)
        up, gate = self.gate(self.norm2(x)).split(48, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):  # type: ignore[misc]
    """Tokens to logits, with the weights of the table used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, tokens: Any, mask: Any) -> Any:
        x = self.table(tokens) * mask[..., None]
        for block in self.blocks:
            x = block(x)
        return F.log_softmax(F.linear(x[:, -1], self.table.weight), -1), x.shape[1] * 2


class Vision(nn.Module):  # type: ignore[misc]
    """Convolutions of every kind, then a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.depthwise = nn.Conv2d(8, 8, 5, padding="same", groups=8)
        self.point = nn.Conv2d(8, 12, 1)
        self.norm = nn.GroupNorm(4, 12)
        self.head = nn.Linear(12, 5)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = self.norm(self.point(F.hardswish(self.depthwise(x)) + x))
        x += 1
        return self.head(self.drop(F.adaptive_avg_pool2d(x, 1).flatten(1))), x.mean((2, 3))


def _mask_of(tokens: Any) -> Any:
    return (tokens > 3).double() + 0.5


@pytest.mark.full
@pytest.mark.parametrize("decompose", [False, True])
def test_a_decoder_with_symbolic_batch_and_length(tmp_path: Path, decompose: bool) -> None:
    module = Decoder().double()
    tokens = torch.randint(0, 50, (2, 6))
    args = (tokens, _mask_of(tokens))
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", min=2, max=100)
    shapes = ({0: batch, 1: length}, {0: batch, 1: length})
    program, graph = export(module, args, tmp_path, decompose=decompose, dynamic_shapes=shapes)
    names = {str(size) for size in graph.tensors["tokens"].size}
    assert names == set(graph.symbols)
    assert {info.hint for info in graph.symbols.values()} == {2, 6}
    first, second = (str(size) for size in graph.tensors["tokens"].size)
    for rows, columns in ((2, 6), (1, 2), (3, 11)):
        tokens = torch.randint(0, 50, (rows, columns))
        args = (tokens, _mask_of(tokens))
        bindings = {first: rows, second: columns}
        got = run(graph, inputs_of(program, graph, args), bindings)
        logits, double_length = module(*args)
        expected = logits.detach().numpy()
        np.testing.assert_allclose(got[graph.outputs[0]], expected, rtol=1e-9, atol=1e-9)
        assert got[graph.outputs[1]] == double_length


def test_a_vision_model_with_in_place_ops(tmp_path: Path) -> None:
    agree(Vision().double(), (torch.randn(2, 3, 20, 18).double(),), tmp_path)


def test_a_vision_model_decomposed(tmp_path: Path) -> None:
    agree(Vision().double(), (torch.randn(2, 3, 20, 18).double(),), tmp_path, decompose=True)


def test_torchs_own_transformer(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu").double()
    args = (torch.randn(2, 5, 16).double(),)
    agree(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), args, tmp_path)


def test_constants_and_arithmetic_on_sizes(tmp_path: Path) -> None:
    table = torch.arange(12).double().view(3, 4)

    def shifted(x: Any) -> Any:
        length = x.shape[0]
        odd = x.new_full((length * 2 - 1 + length % 3, length // 2), 3)
        return x + table[0], odd, x / length**0.5, None

    shapes = (({0: torch.export.Dim("n", min=4, max=90)},),)
    args = (torch.randn(9, 4).double(),)
    agree(as_module(shifted), args, tmp_path, dynamic_shapes=shapes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_narrow_models_agree_within_their_own_rounding(tmp_path: Path, dtype: Any) -> None:
    module = Vision().to(dtype)
    args = (torch.randn(2, 3, 20, 18).to(dtype),)
    program, graph = export(module, args, tmp_path)
    got = run(graph, inputs_of(program, graph, args), {})
    eps = torch.finfo(dtype).eps
    for name, tensor in zip(graph.outputs, module(*args), strict=True):
        error = np.abs(got[name] - tensor.detach().double().numpy()).max()
        assert error < 40 * eps, name


def test_random_inputs_of_an_exported_model_keep_numbers_in_bounds(tmp_path: Path) -> None:
    tokens = torch.randint(0, 50, (2, 6))
    _, graph = export(Decoder().double(), (tokens, _mask_of(tokens)), tmp_path)
    inputs = random_inputs(graph, {}, np.random.default_rng(0))
    assert inputs["tokens"].max() < 50
    for array in run(graph, inputs, {}).values():
        assert np.isfinite(array).all()
