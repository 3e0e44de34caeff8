"""Results as large as the data say, beside torch; ``tests/unit/lowering/test_torch_ops.py`` lowers
and fuses the same uses, with the sizes read on the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from scheduler.errors import UserError  # noqa: E402
from scheduler.ir.operations import Extern  # noqa: E402
from scheduler.lowering import lower  # noqa: E402
from tests.unit.torch_export import agree, as_module  # noqa: E402

F = torch.nn.functional
DYNAMIC = {"dynamic_shapes": (({0: torch.export.Dim.AUTO},),)}


def checked(number: int, end: int = 100) -> int:
    torch._check(number >= 0)
    torch._check(number < end)
    return number


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_what_a_mask_selects(tmp_path: Path, decompose: bool) -> None:
    def f(x: Any) -> Any:
        some = x[x[:, 0] > 0]
        return (
            x.relu().nonzero() * 2,
            x[x > 0] + 1,
            torch.masked_select(x, x[:, :1] > 0).exp().sum(),
            (some @ x.T).softmax(-1),
            torch.where(x > 0)[1] + 1,
            x[x > 100] * 2,
            x[x < 0].sort().values,
            (x.sum() > 0).nonzero(),
        )

    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    agree(as_module(f), (x,), tmp_path, decompose=decompose, **DYNAMIC)


@pytest.mark.parametrize("decompose", [False, True])
def test_sizes_that_are_read_from_a_tensor(tmp_path: Path, decompose: bool) -> None:
    def f(t: Any, x: Any) -> Any:
        n = checked(t.sum().item())
        m = checked(t[0].item(), 5)
        first, second = torch.split(x[: n + m], [n, m])
        return (
            torch.arange(n) * n,
            torch.zeros(n, 3) + n,
            torch.ones(n + 2).cumsum(0),
            x[:m] * 2,
            first.sum() - second,
            torch.repeat_interleave(t) * 2,
            torch.repeat_interleave(x[:2], t, 0),
        )

    x = torch.randn(12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    agree(as_module(f), (torch.tensor([3, 4]), x), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_sizes_that_no_integers_make(tmp_path: Path, decompose: bool) -> None:
    """A float that rounds, a choice, a power by a size: their nodes make them."""

    def f(x: Any) -> Any:
        s = x.shape[0]
        return (
            torch.zeros(torch.sym_ite(s > 5, 2, 3)) + 1,
            torch.zeros(2**s) + s,
            torch.ones(math.trunc(s * 0.7) + 2).cumsum(0),
            F.interpolate(x[None, None], scale_factor=1.7, mode="bilinear") * 2,
        )

    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    agree(as_module(f), (x,), tmp_path, decompose=decompose, **DYNAMIC)


def test_several_results_of_one_size(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return values * 2, inverse + 1, counts.sum(), values.float() / counts

    agree(as_module(f), (torch.tensor([3, 4, 3, 9, 9]),), tmp_path)


POSITIONS: dict[str, Callable[..., Any]] = {
    "read": lambda x, b, y: (x[b], x.select(1, b) * 2),
    "from the end": lambda x, b, y: (x[b - 3], x[..., -1 - b]),
    "computed": lambda x, b, y: (x[y.argmax()], x[y.argmin()].exp().sum()),
    "of a part": lambda x, b, y: (x[1:][b], x.T[b][1:]),
    "written": lambda x, b, y: (x.clone().index_put_((b,), y[0]) + x[b],),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_a_number_that_is_read_is_a_position(name: str, tmp_path: Path) -> None:
    """``x[best]`` takes no extern: kernels read where the element lies."""
    x, y = torch.rand(4, 3, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    graph = agree(as_module(POSITIONS[name]), (x, torch.tensor(1), y), tmp_path)
    assert not [op for op in lower(graph).operations if isinstance(op, Extern)]


@pytest.mark.parametrize("op", ["argmax", "argmin", "min", "max", "amax", "mode", "kthvalue"])
def test_what_nothing_has_is_refused_where_torch_refuses_it(op: str, tmp_path: Path) -> None:
    """Of what a mask leaves, which may be nothing at all."""
    more = {"mode": (0,), "kthvalue": (1,)}.get(op, ())

    def function(x: Any) -> Any:
        result = getattr(x[x > 2], op)(*more)
        return result if isinstance(result, torch.Tensor) else result[0]

    full, none = (torch.arange(5.0, dtype=torch.float64) + start for start in (3, -9))
    with pytest.raises((RuntimeError, IndexError)):
        function(none)
    said = r"of an empty tensor|was exported for|an assertion of the model failed"
    with pytest.raises(UserError, match=said):
        agree(as_module(function), (full,), tmp_path, run_with=(none,))


@pytest.mark.parametrize("op", ["median", "nanmedian", "sum", "mean"])
def test_what_nothing_has_is_torchs(op: str, tmp_path: Path) -> None:
    full, none = (torch.arange(5.0, dtype=torch.float64) + start for start in (3, -9))
    module = as_module(lambda x: getattr(x[x > 2], op)())
    agree(module, (full,), tmp_path, run_with=(none,))
