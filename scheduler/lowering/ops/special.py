"""Rows of special functions and numeric tests."""

from __future__ import annotations

import math

from scheduler.ir.ops import Elements, NoKernel, Op, op
from scheduler.ir.reference import pointwise as ref_pointwise
from scheduler.ir.reference import special as ref
from scheduler.ir.reference.constraints import positive
from scheduler.lowering import special as rules
from scheduler.lowering.ops.activations import formula_op
from scheduler.lowering.pointwise import unary

NO_SPECIAL = NoKernel(
    "no kernels are generated for this special function: its reference is SciPy's"
)
PAIR = "default self_scalar other_scalar: self, other"


def _functions(function: str, *op_names: str) -> tuple[Op, ...]:
    """A pointwise function under several op names."""
    return tuple(
        op(f"aten.{op_name}", "self", unary(function), ref_pointwise.float_unary(function))
        for op_name in op_names
    )


def _polynomials(scipy: str, *names: str) -> tuple[Op, ...]:
    """Orthogonal polynomials, including shifted forms."""
    return tuple(
        op(
            f"aten.special_{name}",
            "default x_scalar n_scalar: x, n",
            NO_SPECIAL,
            ref.orthogonal_polynomial(scipy, "shifted" in name),
        )
        for name in names
    )


def _differences(kind: str, sign: int) -> tuple[Op, ...]:
    """Chebyshev polynomials of the third or fourth kind, and their shifted forms."""
    return tuple(
        op(
            f"aten.special_{shifted}chebyshev_polynomial_{kind}",
            "default x_scalar n_scalar: x, n",
            NO_SPECIAL,
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
    formula_op("special_ndtr", "self", rules.ndtr, ref.scipy_unary("ndtr")),
    formula_op("special_log_ndtr", "self", rules.log_ndtr, ref.scipy_unary("log_ndtr")),
    formula_op("special_entr", "self", rules.entr, ref.scipy_unary("entr")),
    formula_op("sinc", "self", rules.sinc, ref.sinc),
    formula_op("special_sinc", "self", rules.sinc, ref.sinc),
    formula_op(
        "special_spherical_bessel_j0", "x", rules.spherical_bessel_j0, ref.spherical_bessel_j0
    ),
    formula_op("logit", "self, eps=None", rules.logit, ref.logit),
    formula_op("special_logit", "self, eps=None", rules.logit, ref.logit),
    op(
        "aten.xlogy",
        "Tensor Scalar_Other Scalar_Self: self, other",
        rules.x_times_log("log"),
        ref.xlogy,
        requires=positive,
    ),
    op("aten.special_xlogy", PAIR, rules.x_times_log("log"), ref.xlogy, requires=positive),
    op("aten.special_xlog1py", PAIR, rules.x_times_log("log1p"), ref.xlog1py),
    formula_op("mvlgamma", "self, p", rules.multigammaln, ref.multigammaln),
    formula_op("special_multigammaln", "self, p", rules.multigammaln, ref.multigammaln),
    op("aten.deg2rad", "self", rules.scaled_by(math.pi / 180), ref.scaled_by(math.pi / 180)),
    op("aten.rad2deg", "self", rules.scaled_by(180 / math.pi), ref.scaled_by(180 / math.pi)),
    formula_op("logaddexp2", "self, other", rules.logaddexp2, ref.logaddexp2),
    op("aten.ldexp", "Tensor: self, other", rules.ldexp, ref.ldexp),
    op(
        "aten.float_power",
        "Tensor_Tensor Tensor_Scalar Scalar: self, exponent",
        rules.float_power,
        ref.float_power,
    ),
    formula_op("heaviside", "self, values", rules.heaviside, ref.heaviside),
    op("aten.fmax", "self, other", rules.fmax_or_fmin("maximum"), ref.fmax),
    op("aten.fmin", "self, other", rules.fmax_or_fmin("minimum"), ref.fmin),
    op("aten.signbit", "self", rules.signbit, ref.signbit),
    op("aten.isposinf", "self", rules.signed_inf_test(math.inf), ref.isposinf),
    op("aten.isneginf", "self", rules.signed_inf_test(-math.inf), ref.isneginf),
    op("aten.isreal", "self", rules.isreal, ref.isreal),
    op(
        "aten.isclose",
        "self, other, rtol=1e-05, atol=1e-08, equal_nan=False",
        rules.isclose,
        ref.isclose,
    ),
    op(
        "aten.bitwise_left_shift",
        "Tensor Tensor_Scalar Scalar_Tensor: self, other",
        rules.shift("lshift"),
        ref.left_shift,
    ),
    op(
        "aten.bitwise_right_shift",
        "Tensor Tensor_Scalar Scalar_Tensor: self, other",
        rules.shift("rshift"),
        ref.right_shift,
    ),
    op("aten.__lshift__", "Tensor Scalar: self, other", rules.shift("lshift"), ref.left_shift),
    op("aten.__rshift__", "Tensor Scalar: self, other", rules.shift("rshift"), ref.right_shift),
    op("aten.log_sigmoid_forward", "self", rules.log_sigmoid_forward, ref.log_sigmoid_forward),
    formula_op("gcd", "self, other", rules.gcd, ref.gcd),
    formula_op("lcm", "self, other", rules.lcm, ref.lcm),
    op("aten.nextafter", "self, other", rules.nextafter, ref.nextafter),
    op(
        "aten.frexp",
        "Tensor: self",
        NoKernel("no kernels are generated for the mantissa and exponent of a number"),
        ref.frexp,
    ),
    op("aten.positive", "self", rules.positive, ref.positive, Elements.VIEWED),
    op("aten.polygamma", "n, self", NO_SPECIAL, ref.polygamma),
    op("aten.special_polygamma", "n, self", NO_SPECIAL, ref.polygamma),
    op("aten.special_zeta", PAIR, NO_SPECIAL, ref.scipy_binary("zeta")),
    op("aten.special_gammainc", "self, other", NO_SPECIAL, ref.scipy_binary("gammainc")),
    op("aten.igamma", "self, other", NO_SPECIAL, ref.scipy_binary("gammainc")),
    op("aten.special_gammaincc", "self, other", NO_SPECIAL, ref.scipy_binary("gammaincc")),
    op("aten.igammac", "self, other", NO_SPECIAL, ref.scipy_binary("gammaincc")),
    op("aten.special_bessel_j0", "self", NO_SPECIAL, ref.scipy_unary("j0")),
    op("aten.special_bessel_j1", "self", NO_SPECIAL, ref.scipy_unary("j1")),
    op("aten.special_bessel_y0", "self", NO_SPECIAL, ref.scipy_unary("y0")),
    op("aten.special_bessel_y1", "self", NO_SPECIAL, ref.scipy_unary("y1")),
    op("aten.special_modified_bessel_k0", "self", NO_SPECIAL, ref.scipy_unary("k0")),
    op("aten.special_modified_bessel_k1", "self", NO_SPECIAL, ref.scipy_unary("k1")),
    op("aten.special_scaled_modified_bessel_k0", "x", NO_SPECIAL, ref.scipy_unary("k0e")),
    op("aten.special_scaled_modified_bessel_k1", "x", NO_SPECIAL, ref.scipy_unary("k1e")),
    op("aten.special_airy_ai", "x", NO_SPECIAL, ref.airy),
    *_polynomials("eval_chebyt", "chebyshev_polynomial_t", "shifted_chebyshev_polynomial_t"),
    *_polynomials("eval_chebyu", "chebyshev_polynomial_u", "shifted_chebyshev_polynomial_u"),
    *_differences("v", -1),
    *_differences("w", 1),
    *_polynomials("eval_hermite", "hermite_polynomial_h"),
    *_polynomials("eval_hermitenorm", "hermite_polynomial_he"),
    *_polynomials("eval_laguerre", "laguerre_polynomial_l"),
    *_polynomials("eval_legendre", "legendre_polynomial_p"),
)
