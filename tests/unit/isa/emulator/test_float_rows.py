"""Floats of the emulated vector unit against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from scheduler.isa.rocm.emulator.alu.rounding import to_bfloat16
from tests.unit.isa.emulator.rows import Array, any_bits, run, same

_DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def rounded(exact: Fraction, dtype: type) -> Any:
    """A fraction rounded once, ties to even, without NumPy's rounding."""
    info = np.finfo(dtype)
    digits = info.nmant + 1
    size = abs(exact)
    if not size:
        return dtype(0)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    last = Fraction(2) ** max(exponent - digits + 1, int(info.minexp) - info.nmant)
    count = size / last
    whole = count.numerator // count.denominator
    rest = count - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    value = whole * last
    if value > Fraction(float(info.max)):
        return dtype(np.inf if exact > 0 else -np.inf)
    return dtype(float(value) if exact > 0 else -float(value))


def _triples(dtype: type, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Random ones; sums that lie next to the middle of two results; those that cancel; those of
    denormals."""
    info = np.finfo(dtype)
    count = 400
    near = [rng.standard_normal(count).astype(dtype) for _ in range(3)]
    one = dtype(1)
    odd = (one + info.eps * rng.integers(0, 2**info.nmant, count).astype(dtype)).astype(dtype)
    even = np.full(count, one + info.eps / 2 * 2, dtype)
    tiny = np.ldexp(rng.standard_normal(count), int(info.minexp) - rng.integers(0, 12, count))
    big = np.ldexp(odd, info.nmant + 1).astype(dtype)
    cancelling = -(odd * even).astype(dtype)
    a = np.concatenate([near[0], odd, odd, odd, tiny.astype(dtype), any_bits(dtype, count, rng)])
    b = np.concatenate([near[1], even, even, odd, odd, any_bits(dtype, count, rng)])
    c = np.concatenate([near[2], big, cancelling, big, tiny.astype(dtype)])
    return a, b, np.concatenate([c, any_bits(dtype, count, rng)])


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_a_fused_multiplication_and_addition_is_rounded_once(kind: str) -> None:
    dtype = _DTYPES[kind]
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        a, b, c = _triples(dtype, rng)
    got = run(f"v_fma_{kind}", a, b, c)
    for x, y, z, result in zip(a, b, c, got, strict=True):
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            with np.errstate(all="ignore"):
                plain = np.float64(x) * np.float64(y) + np.float64(z)
            assert np.isnan(result) == np.isnan(plain)
            assert np.isnan(plain) or result == plain
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert result == rounded(exact, dtype), (x, y, z)


def test_a_sum_in_the_middle_by_float64_only_is_rounded_to_the_right_side() -> None:
    # 1 + 2**-24 is the middle of two f32; the product's last digit, lost in float64, is beyond it.
    a = np.array([1 + 2**-23, 1.0, -(1 + 2**-23)], np.float32)
    b = np.array([2**-24, 2**-24, 2**-24], np.float32)
    c = np.array([1.0, 1.0, -1.0], np.float32)
    beyond = np.float32(1 + 2**-23)
    assert run("v_fma_f32", a, b, c).tolist() == [beyond, 1.0, -beyond]
    # Here the part beyond the middle is 2**-60 of the whole: float64 does not hold it.
    a = np.array([2.0**-12 + 2.0**-35], np.float32)
    b = np.array([2.0**-12 - 2.0**-35], np.float32)
    exact = Fraction(float(a[0])) * Fraction(float(b[0])) + 1
    assert run("v_fma_f32", a, b, np.float32([1])).tolist() == [rounded(exact, np.float32)]


def test_the_sign_of_a_sum_that_is_zero() -> None:
    one, zero = np.float32([1.0]), np.float32([0.0])
    assert not np.signbit(run("v_fma_f32", one, one, -one))[0]
    assert np.signbit(run("v_fma_f32", -one, zero, -zero))[0]
    wide = [each.astype(np.float64) for each in (one, zero)]
    assert not np.signbit(run("v_fma_f64", wide[0], wide[0], -wide[0]))[0]
    assert np.signbit(run("v_fma_f64", -wide[0], wide[1], -wide[1]))[0]


def divided(dividend: Array, divisor: Array, kind: str) -> Array:
    """The compiler's division: reciprocal, Newton's steps, the three helpers."""
    one = divisor.dtype.type(1)
    scaled, _ = run(f"v_div_scale_{kind}", divisor, divisor, dividend)
    numerator, post = run(f"v_div_scale_{kind}", dividend, divisor, dividend)
    inverse = run(f"v_rcp_{kind}", scaled)
    for _ in range(2 if kind == "f64" else 1):
        error = run(f"v_fma_{kind}", -scaled, inverse, np.full_like(scaled, one))
        inverse = run(f"v_fma_{kind}", error, inverse, inverse)
    quotient = numerator * inverse
    if kind == "f32":
        error = run("v_fma_f32", -scaled, quotient, numerator)
        quotient = run("v_fma_f32", error, inverse, quotient)
    error = run(f"v_fma_{kind}", -scaled, quotient, numerator)
    quotient = run(f"v_div_fmas_{kind}", error, inverse, quotient, post)
    fixed: Array = run(f"v_div_fixup_{kind}", quotient, divisor, dividend)
    return fixed


@pytest.mark.parametrize(("kind", "count"), [("f32", 200_000), ("f64", 3_000)])
def test_the_compilers_division_is_ieees(kind: str, count: int) -> None:
    dtype = _DTYPES[kind]
    rng = np.random.default_rng(1)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0], dtype)
    limits = np.finfo(dtype)
    ends = np.array([limits.max, limits.tiny, limits.smallest_subnormal, -limits.tiny / 2], dtype)
    few = np.concatenate([special, ends])
    x, y = np.meshgrid(few, few)
    with np.errstate(all="ignore"):
        near = any_bits(dtype, count, rng)
        close = near * rng.uniform(0.5, 2.0, count).astype(dtype)
        dividend = np.concatenate([x.ravel(), any_bits(dtype, count, rng), near])
        divisor = np.concatenate([y.ravel(), any_bits(dtype, count, rng), close])
        expected = dividend / divisor
        got = divided(dividend, divisor, kind)
    wrong = ~same(got, expected)
    assert not wrong.any(), (dividend[wrong][:5], divisor[wrong][:5], got[wrong][:5])


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_extremes_of_zeros_and_nans(kind: str) -> None:
    dtype = _DTYPES[kind]
    a = np.array([0.0, -0.0, np.nan, 1.0, np.nan], dtype)
    b = np.array([-0.0, 0.0, 2.0, np.nan, np.nan], dtype)
    low, high = run(f"v_min_{kind}", a, b), run(f"v_max_{kind}", a, b)
    assert np.signbit(low[:2]).all() and not np.signbit(high[:2]).any()
    assert low[2:4].tolist() == high[2:4].tolist() == [2.0, 1.0]
    assert np.isnan(low[4]) and np.isnan(high[4])
    strict = run(f"v_minimum_{kind}", a, b)
    assert np.signbit(strict[:2]).all() and np.isnan(strict[2:]).all()


def test_the_median_is_that_of_sorting_and_the_least_where_one_is_nan() -> None:
    rng = np.random.default_rng(2)
    values = rng.standard_normal((3, 1000)).astype(np.float32)
    assert (run("v_med3_f32", *values) == np.sort(values, axis=0)[1]).all()
    nan = np.float32([np.nan])
    assert run("v_med3_f32", np.float32([3]), nan, np.float32([2])).tolist() == [2.0]


def test_fractions_stay_below_one() -> None:
    tiny = np.float32([-1e-10, -1.25, 2.75, 0.0])
    got = run("v_fract_f32", tiny)
    assert got.tolist() == [np.nextafter(np.float32(1), np.float32(0)), 0.75, 0.75, 0.0]


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_mantissa_and_exponent_make_the_number_again(kind: str) -> None:
    values = any_bits(_DTYPES[kind], 1000, np.random.default_rng(3))
    power = "i16" if kind == "f16" else "i32"
    parts = run(f"v_frexp_mant_{kind}", values)
    exponents = run(f"v_frexp_exp_{power}_{kind}", values)
    finite = np.isfinite(values)
    assert (exponents[~finite] == 0).all()
    assert same(run(f"v_ldexp_{kind}", parts, exponents)[finite], values[finite]).all()
    sizes = np.abs(parts[finite & (values != 0)])
    assert (sizes >= 0.5).all() and (sizes < 1).all()


def test_floats_beyond_integers_are_the_nearest_and_nan_is_zero() -> None:
    values = np.float32([np.nan, np.inf, -np.inf, 3e9, -3e9, -1.9, 1.9, 2147483520.0])
    assert run("v_cvt_i32_f32", values).tolist() == [
        *(0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), -1, 1, 2147483520)
    ]
    assert run("v_cvt_u32_f32", values).tolist() == [
        *(0, 2**32 - 1, 0, 3000000000, 0, 0, 1, 2147483520)
    ]


def test_conversions_to_16_bits_round_once() -> None:
    rng = np.random.default_rng(4)
    drawn = any_bits(np.float32, 3000, rng)
    values = np.concatenate([drawn[np.isfinite(drawn)], rng.standard_normal(1000, np.float32)])
    halves = run("v_cvt_f16_f32", values)
    packed = run("v_cvt_pkrtz_f16_f32", values, -values)
    cut = packed.astype(np.uint16).view(np.float16)
    for value, half, truncated in zip(values, halves, cut, strict=True):
        assert half == rounded(Fraction(float(value)), np.float16)
        assert abs(float(truncated)) <= abs(float(value))
        assert np.isfinite(truncated)
        with np.errstate(over="ignore"):
            next_one = np.nextafter(truncated, np.float16(np.copysign(np.inf, value)))
        assert abs(float(next_one)) > abs(float(value))
    assert ((packed >> 16) == (packed & 0xFFFF) ^ 0x8000).all()


def test_bfloat16_of_float64_is_rounded_once() -> None:
    # By way of float32 these would be middles.
    exact = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 3 * 2**-8 - 2**-40])
    assert to_bfloat16(exact).tolist() == [1 + 2**-7, 1.0, 1 + 2**-7]


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_comparisons_with_nan(kind: str) -> None:
    values = np.array([1.0, 2.0, np.nan, np.inf, -0.0, 0.0], _DTYPES[kind])
    a, b = (each.ravel() for each in np.meshgrid(values, values))
    unordered = np.isnan(a) | np.isnan(b)
    plain = {"lt": a < b, "eq": a == b, "le": a <= b, "gt": a > b, "ge": a >= b}
    plain["lg"] = ~unordered & (a != b)
    for relation, expected in plain.items():
        assert (run(f"v_cmp_{relation}_{kind}", a, b) == expected).all()
        opposite = "neq" if relation == "eq" else f"n{relation}"
        assert (run(f"v_cmp_{opposite}_{kind}", a, b) == ~expected).all()
    assert (run(f"v_cmp_u_{kind}", a, b) == unordered).all()
    assert (run(f"v_cmp_o_{kind}", a, b) == ~unordered).all()
    assert run(f"v_cmp_tru_{kind}", a, b).all() and not run(f"v_cmp_f_{kind}", a, b).any()


def test_each_class_of_floats_has_its_bit() -> None:
    bits = [0x7F800001, 0x7FC00000, 0xFF800000, 0xBF800000, 0x80000001]
    bits += [0x80000000, 0x00000000, 0x00000001, 0x3F800000, 0x7F800000]
    values = np.array(bits, np.uint32).view(np.float32)
    for place in range(10):
        found = run("v_cmp_class_f32", values, np.full(10, 1 << place, np.uint32))
        assert np.flatnonzero(found).tolist() == [place]


def test_mixed_results_are_rounded_to_f32_and_then_to_f16() -> None:
    one = np.float32([1])
    # f32 drops what would lift the sum above the middle of two f16.
    got = run("v_fma_mixlo_f16", one, np.float32([2.0**-11 + 2.0**-30]), one)
    assert got.tolist() == [1.0]


def test_denormals_of_f32_are_flushed_by_reciprocals_and_powers_only() -> None:
    small = np.float32([1e-40])
    assert run("v_add_f32", small, small)[0] == 2 * float(small[0])
    assert run("v_mul_f32", small, np.float32([0.5]))[0] != 0
    assert np.isinf(run("v_rcp_f32", small)[0])
    assert run("v_exp_f32", np.float32([-140]))[0] == 0
    assert run("v_sqrt_f32", np.float32([4, -0.0])).tolist() == [2.0, 0.0]
