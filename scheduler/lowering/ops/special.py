"""Rows of special functions and of tests of numbers."""

from __future__ import annotations

import math

from scheduler.ir.ops import Elements, NoKernel, Op, op
from scheduler.ir.reference import pointwise as ref_pointwise
from scheduler.ir.reference import special as ref
from scheduler.ir.reference.roles import positive
from scheduler.lowering import special
from scheduler.lowering.pointwise import composed, two, unary

TABLE = NoKernel("no kernel is made for this special function: its reference is SciPy's")
PAIR = "default self_scalar other_scalar: self, other"


def _functions(name: str, *names: str) -> tuple[Op, ...]:
    """A pointwise function under several names of its op."""
    return tuple(
        op(f"aten.{each}", "self", unary(name), ref_pointwise.floats(name)) for each in names
    )


def _polynomials(scipy: str, *names: str) -> tuple[Op, ...]:
    """Orthogonal polynomials, their shifted forms among them."""
    return tuple(
        op(
            f"aten.special_{name}",
            "default x_scalar n_scalar: x, n",
            TABLE,
            ref.orthogonal(scipy, "shifted" in name),
        )
        for name in names
    )


def _differences(kind: str, sign: int) -> tuple[Op, ...]:
    """Chebyshev's polynomials of the third or fourth kind, and their shifted forms."""
    return tuple(
        op(
            f"aten.special_{shifted}chebyshev_polynomial_{kind}",
            "default x_scalar n_scalar: x, n",
            TABLE,
            ref.chebyshev_difference(sign, bool(shifted)),
        )
        for shifted in ("", "shifted_")
    )


ROWS = (
    *_functions("lgamma", "lgamma", "special_gammaln"),
    *_functions("digamma", "digamma", "special_digamma", "special_psi"),
    *_functions("erfcx", "special_erfcx"),
    *_functions("ndtri", "special_ndtri"),
    *_functions("i0", "i0", "special_i0", "special_modified_bessel_i0"),
    *_functions("i0e", "special_i0e"),
    *_functions("i1", "special_i1", "special_modified_bessel_i1"),
    *_functions("i1e", "special_i1e"),
    op("aten.special_ndtr", "self", composed(special.ndtr), ref.of_scipy("ndtr")),
    op("aten.special_log_ndtr", "self", composed(special.log_ndtr), ref.of_scipy("log_ndtr")),
    op("aten.special_entr", "self", composed(special.entr), ref.of_scipy("entr")),
    op("aten.sinc", "self", composed(special.sinc), ref.sinc),
    op("aten.special_sinc", "self", composed(special.sinc), ref.sinc),
    op(
        "aten.special_spherical_bessel_j0",
        "x",
        special.of_x(special.spherical_bessel_j0),
        ref.spherical_bessel_j0,
    ),
    op("aten.logit", "self, eps=None", special.logit, ref.logit),
    op("aten.special_logit", "self, eps=None", special.logit, ref.logit),
    op(
        "aten.xlogy",
        "Tensor Scalar_Other Scalar_Self: self, other",
        special.x_times_log("log"),
        ref.xlogy,
        requires=positive,
    ),
    op("aten.special_xlogy", PAIR, special.x_times_log("log"), ref.xlogy, requires=positive),
    op("aten.special_xlog1py", PAIR, special.x_times_log("log1p"), ref.xlog1py),
    op("aten.mvlgamma", "self, p", special.multigammaln, ref.multigammaln),
    op("aten.special_multigammaln", "self, p", special.multigammaln, ref.multigammaln),
    op(
        "aten.deg2rad",
        "self",
        composed(special.scaled_by(math.pi / 180)),
        ref.scaled_by(math.pi / 180),
    ),
    op(
        "aten.rad2deg",
        "self",
        composed(special.scaled_by(180 / math.pi)),
        ref.scaled_by(180 / math.pi),
    ),
    op("aten.logaddexp2", "self, other", two(special.logaddexp2), ref.logaddexp2),
    op("aten.ldexp", "Tensor: self, other", special.ldexp, ref.ldexp),
    op(
        "aten.float_power",
        "Tensor_Tensor Tensor_Scalar Scalar: self, exponent",
        special.float_power,
        ref.float_power,
    ),
    op("aten.heaviside", "self, values", special.heaviside, ref.heaviside),
    op("aten.fmax", "self, other", special.extreme_number("maximum"), ref.fmax),
    op("aten.fmin", "self, other", special.extreme_number("minimum"), ref.fmin),
    op("aten.signbit", "self", special.signbit, ref.signbit),
    op("aten.isposinf", "self", special.infinite(math.inf), ref.isposinf),
    op("aten.isneginf", "self", special.infinite(-math.inf), ref.isneginf),
    op("aten.isreal", "self", special.isreal, ref.isreal),
    op(
        "aten.isclose",
        "self, other, rtol=1e-05, atol=1e-08, equal_nan=False",
        special.isclose,
        ref.isclose,
    ),
    op(
        "aten.bitwise_left_shift",
        "Tensor Tensor_Scalar Scalar_Tensor: self, other",
        special.shift("lshift"),
        ref.left_shift,
    ),
    op(
        "aten.bitwise_right_shift",
        "Tensor Tensor_Scalar Scalar_Tensor: self, other",
        special.shift("rshift"),
        ref.right_shift,
    ),
    op("aten.__lshift__", "Tensor Scalar: self, other", special.shift("lshift"), ref.left_shift),
    op("aten.__rshift__", "Tensor Scalar: self, other", special.shift("rshift"), ref.right_shift),
    op(
        "aten.log_sigmoid_forward",
        "self",
        special.log_sigmoid_forward,
        ref.log_sigmoid_forward,
    ),
    op("aten.gcd", "self, other", special.gcd, ref.gcd),
    op("aten.lcm", "self, other", special.lcm, ref.lcm),
    op(
        "aten.nextafter",
        "self, other",
        special.nextafter,
        ref.nextafter,
    ),
    op(
        "aten.frexp",
        "Tensor: self",
        NoKernel("no kernel is made for the parts of a number's bits"),
        ref.frexp,
    ),
    op("aten.positive", "self", special.positive, ref.positive, Elements.VIEWED),
    op("aten.polygamma", "n, self", TABLE, ref.polygamma),
    op("aten.special_polygamma", "n, self", TABLE, ref.polygamma),
    op("aten.special_zeta", PAIR, TABLE, ref.of_scipy_pair("zeta")),
    op("aten.special_gammainc", "self, other", TABLE, ref.of_scipy_pair("gammainc")),
    op("aten.igamma", "self, other", TABLE, ref.of_scipy_pair("gammainc")),
    op("aten.special_gammaincc", "self, other", TABLE, ref.of_scipy_pair("gammaincc")),
    op("aten.igammac", "self, other", TABLE, ref.of_scipy_pair("gammaincc")),
    op("aten.special_bessel_j0", "self", TABLE, ref.of_scipy("j0")),
    op("aten.special_bessel_j1", "self", TABLE, ref.of_scipy("j1")),
    op("aten.special_bessel_y0", "self", TABLE, ref.of_scipy("y0")),
    op("aten.special_bessel_y1", "self", TABLE, ref.of_scipy("y1")),
    op("aten.special_modified_bessel_k0", "self", TABLE, ref.of_scipy("k0")),
    op("aten.special_modified_bessel_k1", "self", TABLE, ref.of_scipy("k1")),
    op("aten.special_scaled_modified_bessel_k0", "x", TABLE, ref.of_scipy("k0e")),
    op("aten.special_scaled_modified_bessel_k1", "x", TABLE, ref.of_scipy("k1e")),
    op("aten.special_airy_ai", "x", TABLE, ref.airy),
    *_polynomials("eval_chebyt", "chebyshev_polynomial_t", "shifted_chebyshev_polynomial_t"),
    *_polynomials("eval_chebyu", "chebyshev_polynomial_u", "shifted_chebyshev_polynomial_u"),
    *_differences("v", -1),
    *_differences("w", 1),
    *_polynomials("eval_hermite", "hermite_polynomial_h"),
    *_polynomials("eval_hermitenorm", "hermite_polynomial_he"),
    *_polynomials("eval_laguerre", "laguerre_polynomial_l"),
    *_polynomials("eval_legendre", "legendre_polynomial_p"),
)
