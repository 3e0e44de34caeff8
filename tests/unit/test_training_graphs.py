"""Training steps: joint graphs of forward and backward, exported by torch, lowered and right."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.frontends.pt2 import read
from scheduler.ir.graph import Graph
from scheduler.ir.operations import Extern
from scheduler.reference import run
from tests.unit.lowering.running import run_schedule
from tests.unit.torch_export import inputs_of

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Transformer(nn.Module):  # type: ignore[misc]
    """Tokens to the loss of the next ones, through one block of causal attention."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)
        self.norm, self.norm2, self.last = (nn.LayerNorm(16) for _ in range(3))
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, tokens: Any, target: Any) -> Any:
        x = self.table(tokens)
        rows, length, _ = x.shape
        parts = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = (part.view(rows, length, 2, 8).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, 16))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return F.cross_entropy(self.head(self.last(x)).flatten(0, 1), target.flatten())


class ResNet(nn.Module):  # type: ignore[misc]
    """Pictures to the loss of their classes: a stem, a block with its shortcut, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.first, self.norm1 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.second, self.norm2 = nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
        self.short, self.norm3 = nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Any, target: Any) -> Any:
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        y = self.norm2(self.second(F.relu(self.norm1(self.first(x)))))
        x = F.relu(y + self.norm3(self.short(x)))
        return F.cross_entropy(self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), target)


def transformer() -> tuple[Any, tuple[Any, ...]]:
    return Transformer(), (torch.randint(0, 20, (2, 6)), torch.randint(0, 20, (2, 6)))


def resnet() -> tuple[Any, tuple[Any, ...]]:
    return ResNet(), (torch.randn(2, 3, 16, 16).double(), torch.tensor([1, 3]))


def joint(module: Any, args: tuple[Any, ...], folder: Path) -> tuple[Any, Graph]:
    """Loss and gradients of the parameters as one program, and the graph of its file."""
    from torch.export.experimental import _export_forward_backward

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = _export_forward_backward(torch.export.export(module, args))
        torch.export.save(program, folder / "joint.pt2")
    return program, read(folder / "joint.pt2")


def expected(module: Any, args: tuple[Any, ...], program: Any) -> dict[str, Any]:
    """What torch's own backward makes of each output: the loss, gradients, new statistics."""
    module = copy.deepcopy(module)
    loss = module(*args)
    loss.backward()
    gradients = {name: weight.grad for name, weight in module.named_parameters()}
    buffers = dict(module.named_buffers())
    values = {}
    for spec in program.graph_signature.output_specs:
        source = {"GRADIENT_TO_PARAMETER": gradients, "BUFFER_MUTATION": buffers}
        value = source.get(spec.kind.name, {}).get(spec.target, loss)
        values[spec.arg.name] = value.detach().numpy()
    return values


@pytest.mark.full
@pytest.mark.parametrize("make", [transformer, resnet])
def test_a_training_step_lowers_whole_and_is_right(make: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, args = make()
    module = module.double().train()
    program, graph = joint(module, args, tmp_path)
    values = inputs_of(program, graph, args)
    due = expected(module, args, program)
    assert len(due) > len(list(module.parameters()))

    got = run(graph, values, {})
    lowered = pipeline.lower(graph)
    assert [op.op for op in lowered.operations if isinstance(op, Extern)] == []
    operations = run_schedule(pipeline.schedule(lowered), values, {})
    for name, value in due.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-9, atol=1e-11, err_msg=name)
        np.testing.assert_allclose(operations[name], value, rtol=1e-9, atol=1e-11, err_msg=name)
