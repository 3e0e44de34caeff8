"""Higher-order ops beside torch: branches and loops with graphs of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


class Weighted(torch.nn.Module):  # type: ignore[misc]
    """A function of a linear layer and the arguments."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4).double()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(self.layer, *args)


def test_a_branch_is_chosen_by_a_tensor(tmp_path: Path) -> None:
    def choose(layer: Any, x: Any, y: Any) -> Any:
        def yes(a: Any, b: Any) -> Any:
            return layer(a).relu() + b, (a * b).sum()

        def no(a: Any, b: Any) -> Any:
            return a - 2 * b, (a.flip(-1) * b).mean()

        return torch.cond(x.sum() + y > 0, yes, no, (x, y))

    for bias in (100.0, -100.0):
        agree(Weighted(choose), (X, torch.tensor(bias, dtype=torch.double)), tmp_path)


def test_branches_within_branches_and_loops(tmp_path: Path) -> None:
    def step(carried: Any, x: Any) -> Any:
        grown = torch.cond(x.sum() > 0, lambda c, x: c + x, lambda c, x: c * x, (carried, x))
        return grown, (grown * x).tanh()

    def every(layer: Any, x: Any) -> Any:
        carried, made = torch._higher_order_ops.scan(step, layer(x)[0], x)
        nested = torch.cond(
            x[0, 0] > 0,
            lambda x: torch.cond(x[0, 1] > 0, lambda x: x + 1, lambda x: x.clone().mul_(2), (x,)),
            lambda x: x.sin(),
            (x,),
        )
        return carried, made, nested

    agree(Weighted(every), (X,), tmp_path)


def test_a_loop_goes_on_while_its_condition_holds(tmp_path: Path) -> None:
    def loop(layer: Any, x: Any) -> Any:
        def goes_on(i: Any, y: Any) -> Any:
            return (i < 5) & (y.sum() < 100)

        def body(i: Any, y: Any) -> Any:
            return i + 1, layer(y) + 1

        return torch._higher_order_ops.while_loop(goes_on, body, (torch.tensor(0), x))

    agree(Weighted(loop), (X,), tmp_path)


def test_a_scan_over_many_slices_is_left_to_the_reference(tmp_path: Path) -> None:
    def step(carried: Any, x: Any) -> Any:
        return carried * 0.5 + x, carried - x

    def loop(x: Any) -> Any:
        return torch._higher_order_ops.scan(step, x[0] * 0, x)

    agree(as_module(loop), (X.repeat(100, 1),), tmp_path)
