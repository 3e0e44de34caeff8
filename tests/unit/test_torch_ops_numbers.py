"""Numbers of every type through ops that are there: complex ones, whole ones, booleans."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def _randn(*size: int, seed: int = 1, dtype: Any = torch.complex128) -> Any:
    return torch.randn(*size, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def _integers(*values: int, dtype: Any = torch.uint8) -> Any:
    return torch.tensor(values, dtype=dtype)


Z, W, V = _randn(3, 4), _randn(3, 4, seed=2), _randn(3, 4, seed=3)


def test_ranges_of_complex_numbers_and_of_cut_bounds(tmp_path: Path) -> None:
    def ranges(x: Any, y: Any) -> tuple[Any, ...]:
        whole, small, wide = torch.int32, torch.uint8, torch.int64
        return (
            torch.linspace(1.5, 4.25, 3, dtype=torch.complex128),
            torch.linspace(1.5, 2 + 3j, 4, dtype=torch.complex128),
            torch.linspace(x, y, 5, dtype=torch.complex128),
            torch.logspace(0.25, 1.5, 4, dtype=torch.complex128),
            torch.logspace(x, 1.25, 3, base=2.0, dtype=torch.complex128),
            *(torch.arange(0.7, 9.2, 2.5, dtype=t) for t in (whole, small, wide)),
            *(torch.arange(-2.6, 3, dtype=t) for t in (whole, wide)),
            torch.arange(5.5, 0.5, -1.5, dtype=wide),
        )

    start, end = torch.tensor(1 + 2j), torch.tensor(3.5 - 1j)
    agree(as_module(ranges), (start.to(torch.complex128), end.to(torch.complex128)), tmp_path)


def test_logarithms_of_sums_of_complex_powers(tmp_path: Path) -> None:
    def sums(z: Any, w: Any) -> tuple[Any, ...]:
        return (
            *(z.logsumexp(1), (z * 40).logsumexp((0, 1)), z.logsumexp(0, keepdim=True)),
            *(torch.logaddexp(z, w), torch.logaddexp(z * 30, w * 30), torch.logaddexp(z, z)),
            *(z.softmax(0, dtype=torch.float64), z.log_softmax(-1, dtype=torch.float64)),
        )

    agree(as_module(sums), (Z, W), tmp_path)


def test_endless_logarithms_of_complex_sums(tmp_path: Path) -> None:
    inf, nan = math.inf, math.nan
    x = torch.tensor([complex(-inf, 1), complex(nan, 0), complex(2, nan), complex(-inf, 0), 1j])
    y = torch.tensor([complex(-inf, 1), 1 + 0j, 2 + 0j, 3 + 1j, complex(-inf, 0)])
    args = x.to(torch.complex128), y.to(torch.complex128)
    agree(as_module(torch.logaddexp), args, tmp_path)


def test_distances_of_complex_numbers(tmp_path: Path) -> None:
    def distances(z: Any, w: Any, v: Any) -> tuple[Any, ...]:
        return (
            *(torch.dist(z, w, p) for p in (0, 1, 2, 3.5, math.inf)),
            *(functional.pairwise_distance(z, w, p) for p in (1.0, 2.0, 3.0)),
            functional.pairwise_distance(z, w, keepdim=True),
            functional.triplet_margin_loss(z, w, v, swap=True),
            functional.triplet_margin_loss(z, w, v, reduction="none"),
            *(functional.l1_loss(z, w, reduction=r) for r in ("none", "mean", "sum")),
            *(torch.renorm(z, 2, 0, 1.0), torch.renorm(z, 1, 1, 0.5), torch.trace(z)),
            *(torch.trapezoid(z), torch.trapezoid(z, w), torch.trapezoid(z, dx=0.5, dim=0)),
            *(torch.cumulative_trapezoid(z), torch.cumulative_trapezoid(z, w, dim=0)),
        )

    agree(as_module(distances), (Z, W, V), tmp_path)


def test_distances_of_integers_wrap_around(tmp_path: Path) -> None:
    def distances(x: Any, y: Any, n: Any) -> tuple[Any, ...]:
        return (
            functional.pairwise_distance(x, y),
            functional.triplet_margin_loss(x, y, x),
            functional.margin_ranking_loss(x, y, y),
            functional.margin_ranking_loss(x, y, n, margin=0.5, reduction="none"),
            functional.margin_ranking_loss(n, n - 3, n, margin=0.5),
            *(functional.l1_loss(x, y, reduction=r) for r in ("none", "sum")),
            functional.l1_loss(x, n, reduction="sum"),
        )

    x, y = _integers(1, 2, 200), _integers(3, 1, 9)
    agree(as_module(distances), (x, y, _integers(-1, 1, 5, dtype=torch.int32)), tmp_path)


def test_whole_factors_of_integers(tmp_path: Path) -> None:
    """torch cuts factors that are no whole numbers where the matrices are of integers."""

    def products(x: Any, y: Any, m: Any, v: Any, s: Any) -> tuple[Any, ...]:
        return tuple(
            result
            for beta, alpha in ((0.6, 0.2), (1.7, 2.9), (0, 1))
            for result in (
                torch.baddbmm(s, x, y, beta=beta, alpha=alpha),
                torch.addbmm(s, x, y, beta=beta, alpha=alpha),
                torch.addmv(s[0], m, v, beta=beta, alpha=alpha),
            )
        )

    x = torch.arange(18, dtype=torch.int32).reshape(2, 3, 3)
    agree(as_module(products), (x, x - 7, x[0], x[0, 1], x[1]), tmp_path)


def test_whole_powers_and_angles(tmp_path: Path) -> None:
    def powers(x: Any, n: Any, y: Any, flags: Any) -> tuple[Any, ...]:
        whole = torch.pow(x, n), torch.pow(2, n), torch.pow(-1, n), torch.pow(x, n.abs())
        angles = torch.atan2(y, y + 3), torch.atan2(flags, y), torch.atan2(x, n)
        sums = torch.einsum("i->", y), torch.einsum("i->i", y), y.sum_to_size(1), y.sum_to_size(6)
        return *whole, *angles, *sums

    x = _integers(-1, 1, 2, 0, -1, -3, dtype=torch.int32)
    n = _integers(-1, -2, -3, -1, -2, 3, dtype=torch.int32)
    flags = torch.tensor([True, False, True, True, False, True])
    agree(as_module(powers), (x, n, _integers(1, 2, 100, 200, 0, 7), flags), tmp_path)


def test_extremes_of_booleans(tmp_path: Path) -> None:
    def extremes(x: Any, y: Any) -> tuple[Any, ...]:
        two = torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.max, torch.min
        return *(f(x, y) for f in two), x.clamp_min(y), x.clamp_max(y)

    x = torch.tensor([True, False, True, False])
    agree(as_module(extremes), (x, torch.tensor([True, False, False, True])), tmp_path)


def test_slopes_of_a_number(tmp_path: Path) -> None:
    def slopes(x: Any, row: Any, weight: Any, weights: Any) -> tuple[Any, ...]:
        one = functional.prelu(x, weight), functional.prelu(x, weight[0])
        return *one, functional.prelu(row, weight), functional.prelu(row.view(2, 3), weights)

    row = _randn(6, dtype=torch.float64)
    weights = _randn(3, seed=2, dtype=torch.float64)
    args = torch.tensor(-2.0, dtype=torch.float64), row, weights[:1].clone(), weights
    agree(as_module(slopes), args, tmp_path)


def test_numbers_beyond_a_small_type_wrap_around(tmp_path: Path) -> None:
    def wrapped(x: Any) -> tuple[Any, ...]:
        scalar = torch.ops.aten.scalar_tensor(-5, dtype=torch.uint8)
        clamped = x.clamp(-3, 5), x.clamp(min=-3), x.clamp(max=-250)
        sums = torch.add(x, -3), torch.sub(x, -3), torch.rsub(x, -3), x * -3, x * 300
        return *sums, *clamped, torch.full_like(x, -3), x + scalar

    agree(as_module(wrapped), (_integers(1, 9, 200),), tmp_path)


def test_booleans_as_factors(tmp_path: Path) -> None:
    def factors(x: Any, y: Any) -> tuple[Any, ...]:
        sums = torch.add(x, y, alpha=False), torch.add(x, y, alpha=True)
        return *sums, x.sign(), x.sgn(), torch.outer(x, y), torch.kron(x, y)

    x = torch.tensor([True, False, True])
    agree(as_module(factors), (x, torch.tensor([True, True, False])), tmp_path)


def test_moves_of_nothing_and_of_all(tmp_path: Path) -> None:
    def moved(x: Any, nothing: Any, places: Any) -> tuple[Any, ...]:
        return torch.take_along_dim(x, places), torch.roll(nothing, 2, 0), nothing.logsumexp(0)

    x = _randn(2, 3, dtype=torch.float64)
    places = torch.tensor([[5, 0], [3, 3], [1, 4], [2, 2]])
    agree(as_module(moved), (x, torch.zeros(0, 3), places), tmp_path)


def test_transforms_of_windows_of_complex_numbers(tmp_path: Path) -> None:
    def transforms(z: Any, x: Any, window: Any) -> tuple[Any, ...]:
        return (
            torch.istft(z, 10),
            torch.istft(z, 10, onesided=False, window=window.real),
            torch.istft(z, 10, onesided=False, window=window, return_complex=True),
            torch.stft(x, 8, return_complex=True, onesided=False),
            torch.stft(z[:, 0], 8),
        )

    window = _randn(10, seed=3) + 3
    args = _randn(10, 6), _randn(30, dtype=torch.float64), window
    agree(as_module(transforms), args, tmp_path)


def _edges_of(dtype: Any) -> tuple[Any, Any]:
    """Powers of 2, subnormal numbers, 0, the greatest and what is beyond; and sides to go to."""
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    near = [1.0, 2.0, 1.5, 0.0, -0.0, info.max, math.inf, least, info.smallest_normal, 3 * least]
    values = torch.tensor([*near, *(-x for x in near), math.nan], dtype=dtype)
    ends = torch.tensor([[math.inf], [-math.inf], [0.0], [1.0], [math.nan]], dtype=dtype)
    return values.expand(5, -1).clone(), ends


def test_the_next_number_of_a_narrow_type(tmp_path: Path) -> None:
    def following(x: Any, x_end: Any, y: Any, y_end: Any) -> tuple[Any, ...]:
        return torch.nextafter(x, x_end).double(), torch.nextafter(y, y_end).double()

    args = *_edges_of(torch.float16), *_edges_of(torch.bfloat16)
    agree(as_module(following), args, tmp_path)
