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


@pytest.mark.full
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


@pytest.mark.full
def test_a_loop_goes_on_while_its_condition_holds(tmp_path: Path) -> None:
    def loop(layer: Any, x: Any) -> Any:
        def goes_on(i: Any, y: Any) -> Any:
            return (i < 5) & (y.sum() < 100)

        def body(i: Any, y: Any) -> Any:
            return i + 1, layer(y) + 1

        return torch._higher_order_ops.while_loop(goes_on, body, (torch.tensor(0), x))

    agree(Weighted(loop), (X,), tmp_path)


def test_a_loop_goes_on_until_it_has_converged(tmp_path: Path) -> None:
    """Newton's iteration: how often the body runs is in the data, and none is enough for zeros."""

    def roots(x: Any) -> Any:
        def goes_on(root: Any, moved: Any) -> Any:
            return moved.abs().max() > 1e-9

        def body(root: Any, _moved: Any) -> Any:
            better = (root + x.abs() / root) / 2
            return better, better - root

        start = x.abs() + 1
        found, left = torch._higher_order_ops.while_loop(goes_on, body, (start, start - x.abs()))
        none, _ = torch._higher_order_ops.while_loop(goes_on, body, (start, start * 0))
        return found, left, none * 2

    agree(as_module(roots), (X,), tmp_path)


@pytest.mark.full
def test_a_loop_hands_on_what_it_got_and_fixed_values(tmp_path: Path) -> None:
    def fibonacci(x: Any, flag: Any) -> Any:
        def goes_on(i: Any, a: Any, b: Any, fixed: Any, on: Any) -> Any:
            return on.clone()

        def body(i: Any, a: Any, b: Any, fixed: Any, on: Any) -> Any:
            return i + 1, b.clone(), a + b, torch.ones_like(fixed), i < 7

        loop = torch._higher_order_ops.while_loop
        first = loop(goes_on, body, (torch.tensor(0), x, x + 1, x, flag))
        return loop(goes_on, body, (first[0] - 20, first[1], first[2], x, flag)), x + first[3]

    as_tuple = as_module(lambda x, flag: sum(map(_listed, fibonacci(x, flag)), ()))
    agree(as_tuple, (X, torch.tensor(True)), tmp_path)


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def test_a_loop_within_the_body_of_another(tmp_path: Path) -> None:
    def loop(layer: Any, x: Any) -> Any:
        while_loop = torch._higher_order_ops.while_loop

        def inner(j: Any, y: Any) -> Any:
            return j + 1, layer(y).softmax(-1)

        def body(i: Any, y: Any) -> Any:
            _, made = while_loop(lambda j, y: j < i, inner, (i * 0, y))
            return i + 1, made + x

        return while_loop(lambda i, y: i < 4, body, (torch.tensor(0), x))

    agree(Weighted(loop), (X,), tmp_path)


def test_a_scan_over_many_slices_is_a_loop(tmp_path: Path) -> None:
    """Slices of 4, 3 and 1 elements: the latter two begin where kernels cannot read runs."""

    def step(carried: Any, x: Any) -> Any:
        hidden, count = carried
        hidden = (hidden * 0.5 + x["a"]).tanh()
        return [hidden, count + 1], {"b": hidden - x["a"], "c": x["b"] * count, "d": x["c"].clone()}

    def loop(x: Any) -> Any:
        xs = {"a": x, "b": x[:, :3], "c": x.T.contiguous().T[:, 0].float()}
        carried, made = torch._higher_order_ops.scan(step, [x[0] * 0, torch.tensor(0)], xs)
        return (*carried, *made.values())

    agree(as_module(loop), (X.repeat(30, 1),), tmp_path)


@pytest.mark.full
def test_a_recurrent_cell_over_many_steps(tmp_path: Path) -> None:
    def loop(layer: Any, x: Any) -> Any:
        def step(hidden: Any, x: Any) -> Any:
            hidden = torch.tanh(layer(hidden) + x)
            return hidden, hidden.softmax(-1)

        return torch._higher_order_ops.scan(step, x[0], x, reverse=True)

    agree(Weighted(loop), (X.repeat(200, 2).reshape(200, 6, 4),), tmp_path)


def test_a_function_of_many_slices(tmp_path: Path) -> None:
    def every(layer: Any, x: Any) -> Any:
        square = torch._higher_order_ops.map(lambda y, w: layer(y) @ w, x, x[0, :4] * 2)
        return square, torch._higher_order_ops.map(lambda y: y.sort(-1)[1], x.float())

    agree(Weighted(every), (X.repeat(100, 2).reshape(100, 6, 4),), tmp_path)


@pytest.mark.full
def test_loops_over_as_many_slices_as_the_model_is_given(tmp_path: Path) -> None:
    def every(layer: Any, x: Any) -> Any:
        def step(carried: Any, x: Any) -> Any:
            return layer(carried) * 0.5 + x, carried.cumsum(-1)

        carried, made = torch._higher_order_ops.scan(step, x[0] * 0, x)
        return carried, made, torch._higher_order_ops.map(lambda y: y.exp(), x[:, :3])

    steps = {"args": ({0: torch.export.Dim("steps", min=3, max=500)},)}
    agree(Weighted(every), (X.repeat(30, 1),), tmp_path, dynamic_shapes=steps, bindings={})


def ssm(left: Any, right: Any) -> Any:
    return left[0] * right[0], right[0] * left[1] + right[1]


COMBINED: dict[str, tuple[Any, int]] = {  # the function, and how many tensors it combines
    "sum": (torch.add, 1),
    "product": (torch.mul, 1),
    "greatest": (torch.maximum, 1),
    "logaddexp": (torch.logaddexp, 1),
    "last positive": (lambda a, b: torch.where(b > 0, b, a), 1),
    "recurrence": (ssm, 2),
    "matrices": (torch.matmul, 1),
}


@pytest.mark.full(but=["recurrence", "matrices"])
@pytest.mark.parametrize("name", COMBINED)
def test_associative_scans_of_any_shape(name: str, tmp_path: Path) -> None:
    """torch writes them out as slices that a function under vmap combines."""
    from torch._higher_order_ops.associative_scan import associative_scan

    combine, count = COMBINED[name]
    generator = torch.Generator().manual_seed(4)
    for length, (reverse, sizes) in enumerate(
        [(False, []), (True, [2]), (False, [3]), (True, [2, 3]), (False, [3, 2, 2]), (True, [])], 1
    ):
        dim = length % (len(sizes) + 1)
        shape = [*sizes[:dim], length, *sizes[dim:], *([2, 2] if name == "matrices" else [])]
        xs = [torch.randn(shape, dtype=torch.double, generator=generator) for _ in range(count)]

        def scan(*xs: Any, dim: int = dim, reverse: bool = reverse) -> Any:
            given = xs if count > 1 else xs[0]
            kind = {"reverse": reverse, "combine_mode": "generic"}
            return associative_scan(combine, given, dim, **kind)

        agree(as_module(scan), tuple(xs), tmp_path)
