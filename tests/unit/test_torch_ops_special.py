"""Special functions, tests of numbers, and what integers' bits do, against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
special = torch.special

NUMBERS = (0.0, -0.0, 0.5, 1.0, 1.5, 2.0, -1.0, -2.5, -0.3, 3.7, 11.0, 40.0, -40.0, 0.999, 1e-5)
SPECIAL = torch.tensor([*NUMBERS, math.inf, -math.inf, math.nan], dtype=torch.double)


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _ints(low: int, high: int, *size: int) -> Any:
    return torch.randint(low, high, size, generator=torch.Generator().manual_seed(3))


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_special_functions(tmp_path: Path, decompose: bool) -> None:
    functions = [
        *(
            torch.lgamma,
            torch.digamma,
            special.erfcx,
            special.ndtri,
            special.ndtr,
            special.log_ndtr,
        ),
        *(torch.i0, special.i0e, special.i1, special.i1e, special.entr, torch.sinc, torch.logit),
        *(torch.special.spherical_bessel_j0, torch.deg2rad, torch.rad2deg, torch.signbit),
        *(torch.isposinf, torch.isneginf, torch.isreal, torch.angle, torch.sgn, torch.positive),
        lambda x: torch.logit(x, 0.1),
        lambda x: special.multigammaln(x.abs() + 3, 4),
        lambda x: torch.xlogy(x, 2.0),
        lambda x: torch.xlogy(0, x),
        lambda x: special.xlog1py(x, x),
        lambda x: special.xlog1py(2, x),
    ]

    def every(x: Any, s: Any, i: Any) -> Any:
        return (
            *(function(x) for function in functions),
            *(function(s) for function in functions if function is not special.log_ndtr),
            *(function(i) for function in functions[:-1] if function is not torch.positive),
        )

    i = _ints(-3, 5, 7)
    agree(as_module(every), (_randn(3, 50) * 3, SPECIAL, i), tmp_path, decompose=decompose)


def test_special_functions_of_the_reference_alone(tmp_path: Path) -> None:
    n = torch.arange(-1, 5).double()[:, None]

    def every(x: Any, p: Any, n: Any) -> Any:
        return (
            *(special.polygamma(k, p) for k in (0, 3)),
            special.polygamma(1, p.float()),
            *(special.zeta(p + 1, p), special.gammainc(p, p + 1), torch.igammac(p + 1, p)),
            *(
                special.bessel_j0(x),
                special.bessel_j1(x),
                special.bessel_y0(p),
                special.bessel_y1(p),
            ),
            *(special.modified_bessel_k0(p), special.scaled_modified_bessel_k1(p)),
            special.airy_ai(x),
            *(special.chebyshev_polynomial_t(x, n), special.hermite_polynomial_he(x, n)),
            *(special.laguerre_polynomial_l(x, n), special.legendre_polynomial_p(x, n)),
            *(special.shifted_chebyshev_polynomial_u(x, n), special.hermite_polynomial_h(x, 3)),
            *(special.chebyshev_polynomial_v(x, n), special.chebyshev_polynomial_w(x, n)),
            special.shifted_chebyshev_polynomial_w(x, n),
            *torch.frexp(x),
        )

    x = torch.linspace(-0.9, 0.95, 20, dtype=torch.double)
    agree(as_module(every), (x, x + 1.5, n), tmp_path)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_pairs_of_numbers(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, y: Any, i: Any, j: Any) -> Any:
        return (
            *(torch.fmax(x, y), torch.fmin(x, y), torch.fmax(i, j), torch.heaviside(x, y)),
            *(torch.heaviside(i, j), torch.logaddexp2(x, y), torch.ldexp(x, i), torch.ldexp(j, i)),
            *(torch.float_power(i, 2), torch.float_power(x, y), torch.float_power(2, i)),
            *(torch.isclose(x, y), torch.isclose(x, x + 1e-9, equal_nan=True), torch.isclose(i, j)),
            *(torch.isclose(x, y, rtol=0, atol=0.5), torch.nextafter(x, y)),
            *(torch.gcd(i, j), torch.lcm(i, j), torch.gcd(i.int(), j.to(torch.uint8))),
            *(i << j, i >> j, i << 70, i >> 70, torch.bitwise_left_shift(3, j)),
            *(
                torch.bitwise_right_shift(i.to(torch.int8), j.to(torch.int8)),
                i.to(torch.uint8) >> 9,
            ),
            *(torch.bitwise_and(6, i), torch.bitwise_xor(6, i)),
            *torch.ops.aten.log_sigmoid_forward(x),
            torch.ops.aten._prelu_kernel(x, y),
        )

    x, y = torch.meshgrid(SPECIAL, SPECIAL, indexing="ij")
    i, j = torch.meshgrid(torch.arange(-9, 9), torch.arange(-8, 10), indexing="ij")
    agree(as_module(every), (x, y, i, j), tmp_path, decompose=decompose)
