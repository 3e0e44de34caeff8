"""Random numbers: the published generator, the same in the reference and in kernels, by seed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.ir.graph import Graph
from scheduler.ir.numerics import philox as of_kernels
from scheduler.ir.operations import Extern
from scheduler.ir.random import SEED
from scheduler.ir.reference.random import philox
from scheduler.lowering import lower
from scheduler.reference import run
from tests.unit.lowering.running import run_schedule

pytest.importorskip("torch")

import torch

from tests.support.exported_kernels import bundle_of, outputs_of
from tests.unit.torch_export import as_module, export

# Random123's kat_vectors for philox4x32, 10 rounds: counter, key, result.
KNOWN = [
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def _numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter: str, key: str, result: str) -> None:
    first, second = _numbers(key)
    made = philox(np.array(_numbers(counter), np.uint64), (first, second))
    assert made.tolist() == _numbers(result)


def test_kernels_have_the_same_generator() -> None:
    """``numerics`` is what kernels are compared with (and by it the C++ form)."""
    rng = np.random.default_rng(0)
    low, high = rng.integers(0, 2**32, (2, 100), np.uint64)
    counters = np.stack([low, high, np.zeros_like(low), np.zeros_like(low)], axis=-1)
    counter = (low | high << np.uint64(32)).view(np.int64)
    expected = philox(counters, (7, 2**31 - 5))
    key = np.int64(7 | (2**31 - 5) << 32)
    for word in (0, 1):
        assert (of_kernels(word)(counter, key).view(np.uint64) == expected[:, word]).all()


attention = torch.nn.functional.scaled_dot_product_attention


def _drawing(x: Any) -> Any:
    h = x.half()
    return (
        *(torch.rand(4, 5), torch.rand_like(x), torch.rand_like(h), torch.randn(3, 7)),
        *(torch.randn_like(x[0]), torch.randint(5, (40,)), torch.randint_like(x, -3, 9)),
        *(torch.bernoulli(x.sigmoid()), torch.bernoulli(x, 0.25), torch.normal(x, 2.0)),
        *(torch.rand(3, 4, dtype=d) for d in (torch.complex64, torch.complex128)),
        *(torch.randn(3, 4, dtype=d) for d in (torch.complex64, torch.complex128)),
        attention(x, x, x, dropout_p=0.4, is_causal=True),
        attention(x[:, None], x[:1, None], x[:, None], x[:, None, :, :4] > 0, dropout_p=0.9),
        attention(x, x, x, dropout_p=1.0),
        *(
            torch.normal(0.0, x.abs()),
            torch.normal(1.0, 0.5, (6,)),
            torch.zeros_like(x).uniform_(-1, 3),
        ),
        *(x.clone().exponential_(2.0), x.clone().geometric_(0.3), x.clone().log_normal_(0.1, 0.2)),
        torch.nn.functional.dropout(x, 0.4, training=True),
        torch.nn.functional.alpha_dropout(x, 0.4, training=True),
        torch.nn.functional.feature_alpha_dropout(x, 0.4, training=True),
        torch.nn.functional.dropout1d(x, 0.4, training=True),
        *torch.native_dropout(x, 0.3, True),
        *torch.native_dropout(x, 0.3, False),
        torch.nn.functional.rrelu(x, training=True),
        torch.nn.functional.rrelu(x),
    )


def _outputs(graph: Graph, values: dict[str, Any], seed: int) -> dict[str, Any]:
    return run(graph, values, {SEED: seed})


@pytest.mark.full
def test_kernels_draw_what_the_reference_draws(tmp_path: Path) -> None:
    x = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    _, graph = export(as_module(_drawing), (x,), tmp_path)
    values = {graph.inputs[0].name: x.double().numpy()}
    assert graph.symbols[SEED].hint == 0
    lowered = lower(graph)
    assert not [op for op in lowered.operations if isinstance(op, Extern)]
    for seed in (0, 12345, 2**31 - 1):
        expected = _outputs(graph, values, seed)
        got = run_schedule(schedule(lowered), values, {SEED: seed})
        for name, value in expected.items():
            made = got[name] if np.iscomplexobj(value) else got[name].astype(float)
            np.testing.assert_allclose(made, value, rtol=1e-9, atol=1e-9)
    compiled = outputs_of(graph, values)
    for name, value in _outputs(graph, values, 0).items():
        np.testing.assert_allclose(compiled[name], value, rtol=2e-3, atol=1e-5, err_msg=name)


def test_orders_and_places(tmp_path: Path) -> None:
    def every(chances: Any) -> Any:
        return (
            torch.randperm(50),
            torch.multinomial(chances, 3),
            torch.multinomial(chances[0], 200, replacement=True),
        )

    chances = torch.tensor([[0.0, 1.0, 3.0, 0.5], [2.0, 2.0, 0.0, 1.0]])
    _, graph = export(as_module(every), (chances,), tmp_path)
    values = {graph.inputs[0].name: chances.double().numpy()}
    order, without, drawn = _outputs(graph, values, 3).values()
    assert sorted(order) == list(range(50)) != order.tolist()
    assert [sorted(row) for row in without] == [[1, 2, 3], [0, 1, 3]]
    share = np.bincount(drawn, minlength=4) / drawn.size
    np.testing.assert_allclose(share, chances[0].numpy() / 4.5, atol=0.1)


def test_what_is_drawn_is_distributed_as_it_should_be(tmp_path: Path) -> None:
    n = 100_000

    def every(x: Any) -> Any:
        return (torch.rand(n), torch.randn(n), torch.rand(n), torch.bernoulli(x, 0.3)[0] * 0 + x)

    _, graph = export(as_module(every), (torch.ones(2),), tmp_path)
    values = {graph.inputs[0].name: np.ones(2)}
    u, z, other, _ = _outputs(graph, values, 1).values()
    again = next(iter(_outputs(graph, values, 2).values()))
    assert 0 <= u.min() < 1e-3 and 1 - 1e-3 < u.max() < 1
    assert abs(u.mean() - 0.5) < 5 / np.sqrt(12 * n) and abs(u.var() - 1 / 12) < 1e-3
    assert abs(z.mean()) < 5 / np.sqrt(n) and abs(z.var() - 1) < 0.03
    assert abs((z**4).mean() - 3) < 0.15
    # Streams of two ops, and of two seeds, know nothing of each other.
    assert abs(np.corrcoef(u, other)[0, 1]) < 5 / np.sqrt(n) > abs(np.corrcoef(u, again)[0, 1])


def test_a_model_that_draws_nothing_has_no_seed(tmp_path: Path) -> None:
    _, graph = export(as_module(lambda x: x + 1), (torch.ones(2),), tmp_path)
    assert SEED not in graph.symbols


@pytest.mark.parametrize("training", [False, True])
def test_ops_of_training_ask_for_a_seed_in_training_alone(tmp_path: Path, training: bool) -> None:
    def drawing(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        dropped = torch.nn.functional.dropout(x, 0.5, training)
        return dropped, torch.nn.functional.rrelu(x, training=training)

    _, graph = export(as_module(drawing), (torch.ones(2),), tmp_path)
    assert (SEED in graph.symbols) is training


def test_what_a_branch_draws_asks_for_a_seed_too(tmp_path: Path) -> None:
    def branching(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + torch.rand(9), lambda x: x + 1, (x,))

    _, graph = export(as_module(branching), (torch.ones(9),), tmp_path)
    assert SEED in graph.symbols
    given = {graph.inputs[0].name: np.ones(9)}
    (drawn,) = _outputs(graph, given, 3).values()
    assert (drawn > 1).all()
    assert len(np.unique(drawn)) == 9
    (lowered,) = run_schedule(schedule(lower(graph)), given, {SEED: 3}).values()
    np.testing.assert_allclose(lowered, drawn, rtol=1e-6)


def test_a_bundles_wrapper_takes_the_seed(tmp_path: Path) -> None:
    _, graph = export(as_module(lambda x: x + torch.rand(9)), (torch.zeros(9),), tmp_path)
    bundle_of(graph, tmp_path / "bundle")
    wrapper = runpy.run_path(str(tmp_path / "bundle" / "wrapper.py"))
    given = {name: np.zeros(9, np.float32) for name in wrapper["INPUTS"]}
    (first,), (seventh,) = (wrapper["call"](given, bindings=b) for b in (None, {SEED: 7}))
    values = {graph.inputs[0].name: np.zeros(9)}
    for got, seed in ((first, 0), (seventh, 7)):
        (expected,) = _outputs(graph, values, seed).values()
        np.testing.assert_array_equal(got, expected)


def test_writes_to_what_dropout_left_do_not_reach_its_input(tmp_path: Path) -> None:
    """In training its result is memory of its own; otherwise it is the input's."""
    drop = torch.nn.functional.dropout

    def every(x: Any) -> Any:
        h, kept, here = x * 2, x * 2, x * 3
        drop(h, 0.5, training=True).add_(1)
        drop(kept, 0.5, training=False).add_(1)
        drop(here, 0.5, training=True, inplace=True)
        return h, kept, here

    x = torch.ones(50)
    _, graph = export(as_module(every), (x,), tmp_path)
    values = {graph.inputs[0].name: np.ones(50)}
    expected = _outputs(graph, values, 5)
    h, kept, here = expected.values()
    assert (h == 2).all() and (kept == 3).all() and set(here) == {0.0, 6.0}
    got = run_schedule(schedule(lower(graph)), values, {SEED: 5})
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value)


def test_dropout_of_channels_and_of_selu(tmp_path: Path) -> None:
    def every(x: Any, y: Any) -> Any:
        return (
            torch.nn.functional.dropout2d(x, 0.25, training=True),
            torch.nn.functional.alpha_dropout(y, 0.25, training=True),
            torch.nn.functional.feature_alpha_dropout(x, 0.25, training=True),
            torch.nn.functional.alpha_dropout(y, 1.0, training=True),
            torch.poisson(y.abs() * 4),
        )

    x, y = torch.ones(40, 50, 2, 2), torch.randn(40_000, generator=torch.Generator().manual_seed(1))
    _, graph = export(as_module(every), (x, y), tmp_path)
    given = {one.name: t.double().numpy() for one, t in zip(graph.inputs, (x, y), strict=True)}
    channels, selu, both, none, counts = _outputs(graph, given, 5).values()
    # A channel is left or dropped as a whole; what is left keeps the mean.
    assert set(channels.ravel().round(6)) == {0.0, round(1 / 0.75, 6)}
    assert (channels == channels[:, :, :1, :1]).all() and (both == both[:, :, :1, :1]).all()
    assert abs((channels == 0).mean() - 0.25) < 0.05
    assert abs(selu.mean()) < 0.03 and abs(selu.var() - 1) < 0.05
    assert not none.any()
    rate = np.abs(given[graph.inputs[1].name]) * 4
    assert (
        abs((counts - rate).mean()) < 0.05 and abs(((counts - rate) ** 2 / rate).mean() - 1) < 0.1
    )
    assert (counts == counts.round()).all()
