"""Recurrent layers and their cells: the reference against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.ir.operations import Extern, LoopBegin
from scheduler.ir.reference import recurrent as reference
from scheduler.limits import MAX_RECURRENT_STEPS
from scheduler.lowering import lower
from tests.unit.torch_export import agree, export

torch = pytest.importorskip("torch")
nn = torch.nn


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(8))


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.LSTM(3, 4),
                nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
                nn.LSTM(3, 4, proj_size=2, bias=False),
                nn.GRU(3, 4, num_layers=2, bidirectional=True),
                nn.RNN(3, 4, nonlinearity="relu"),
                nn.RNN(3, 4, batch_first=True, bidirectional=True),
            ]
        )
        self.cells = nn.ModuleList(
            [nn.LSTMCell(3, 4), nn.GRUCell(3, 4, bias=False), nn.RNNCell(3, 4)]
        )

    def forward(self, x: Any) -> Any:
        made = []
        for layer in self.layers:
            out, state = layer(x)
            made += [out, *(state if isinstance(state, tuple) else (state,))]
        out, state = self.layers[0](x[0], (x[:1, 0, :1].repeat(1, 4), x[:1, 1, :1].repeat(1, 4)))
        made += [out, *state]
        for cell in self.cells:
            out = cell(x[0])
            made += list(out) if isinstance(out, tuple) else [out]
        made.append(self.cells[1](x[0, 0], made[-1][0]))
        return tuple(made)


def test_recurrent_layers(tmp_path: Path) -> None:
    agree(Layers().double(), (_randn(5, 2, 3),), tmp_path)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_recurrent_layers_as_torch_decomposes_them_on_a_cpu(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = nn.LSTM(3, 4, bidirectional=True)

        def forward(self, x: Any) -> Any:
            out, (hidden, cell) = self.layer(x)
            return out, hidden, cell

    agree(Model(), (_randn(5, 2, 3).float(),), tmp_path, decompose=True)


def test_the_reference_of_packed_sequences() -> None:
    sizes = torch.tensor([3, 3, 2, 1])
    torch.manual_seed(0)
    layer = nn.GRU(3, 4, bidirectional=True).double()
    x, first = _randn(9, 3), _randn(2, 3, 4)
    weights = [w.detach() for w in layer._flat_weights]
    expected = torch._VF.gru(x, sizes, first, weights, True, 1, 0.0, False, True)
    got = reference.gru(
        {
            **{"data": x.numpy(), "batch_sizes": sizes.numpy(), "hx": first.numpy()},
            **{"params": [w.numpy() for w in weights], "has_biases": True, "num_layers": 1},
            **{"dropout": 0.0, "train": False, "bidirectional": True},
        }
    )
    for own, tensor in zip(got, expected, strict=True):
        np.testing.assert_allclose(own, tensor.numpy(), rtol=1e-12, atol=1e-12)


class Long(nn.Module):
    """Layers whose steps are more than are lowered one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)
        self.gru, self.rnn = (
            nn.GRU(3, 4, num_layers=4),
            nn.RNN(3, 5, num_layers=4, batch_first=True),
        )

    def forward(self, x: Any) -> Any:
        out, state = self.lstm(x)
        return out, *state, *self.gru(x), *self.rnn(x.transpose(0, 1))


@pytest.mark.long
def test_a_long_sequence_is_a_loop(tmp_path: Path) -> None:
    """Of each layer and direction; up to a number of steps all are lowered one by one."""
    layer = nn.LSTM(3, 4)
    for steps, loops in ((MAX_RECURRENT_STEPS, 0), (MAX_RECURRENT_STEPS + 1, 1)):
        _, graph = export(layer, (torch.zeros(steps, 2, 3),), tmp_path)
        operations = lower(graph).operations
        assert not any(isinstance(op, Extern) for op in operations)
        assert sum(isinstance(op, LoopBegin) for op in operations) == loops
    agree(Long().double(), (_randn(70, 2, 3),), tmp_path)
