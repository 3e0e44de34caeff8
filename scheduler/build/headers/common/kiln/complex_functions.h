// The functions of kiln/math.h on complex numbers, with the branch cuts of C's <complex.h>.
//
// A result's distance from the right one is some roundings of its magnitude, not of each part's:
// a part that is near 0 beside the other one has fewer digits.
#pragma once

#include <kiln/elementary.h>
#include <kiln/trigonometry.h>

namespace kiln {

template <typename T>
KILN_INLINE bool isnan(complex<T> z) {
  return isnan(z.re) || isnan(z.im);
}
template <typename T>
KILN_INLINE bool isinf(complex<T> z) {
  return isinf(z.re) || isinf(z.im);
}
template <typename T>
KILN_INLINE bool isfinite(complex<T> z) {
  return isfinite(z.re) && isfinite(z.im);
}

template <typename T>
KILN_INLINE T abs(complex<T> z) {
  return hypot(z.re, z.im);
}
template <typename T>
KILN_INLINE T angle(complex<T> z) {
  return atan2(z.im, z.re);
}

namespace detail {

template <typename T>
KILN_INLINE complex<T> times_i(complex<T> z) {
  return {-z.im, z.re};
}
template <typename T>
KILN_INLINE complex<T> over_i(complex<T> z) {
  return {z.im, -z.re};
}
template <typename T>
constexpr T kLn2Whole = pick<T>(0x1.62e430p-1f, 0x1.62e42fefa39efp-1);

}  // namespace detail

// ---- exponentials and logarithms -----------------------------------------------------------------

template <typename T>
KILN_INLINE complex<T> exp(complex<T> z) {
  const T size = exp(z.re);
  if (z.im == T(0)) return {size, z.im};
  // Nothing has no direction.
  if (size == T(0)) return {T(0), T(0)};
  return {size * cos(z.im), size * sin(z.im)};
}

template <typename T>
KILN_INLINE complex<T> exp2(complex<T> z) {
  const T size = exp2(z.re), turn = z.im * detail::kLn2Whole<T>;
  if (z.im == T(0)) return {size, z.im};
  return {size * cos(turn), size * sin(turn)};
}

template <typename T>
KILN_INLINE complex<T> expm1(complex<T> z) {
  const T less = expm1(z.re), half = sin(T(0.5) * z.im);
  return {less * cos(z.im) - T(2) * half * half, exp(z.re) * sin(z.im)};
}

template <typename T>
KILN_INLINE complex<T> log(complex<T> z) {
  return {log(abs(z)), angle(z)};
}

template <typename T>
KILN_INLINE complex<T> log2(complex<T> z) {
  return {log2(abs(z)), angle(z) * detail::kLog2E<T>};
}

template <typename T>
KILN_INLINE complex<T> log10(complex<T> z) {
  return {log10(abs(z)), angle(z) * detail::kLog10E<T>};
}

template <typename T>
KILN_INLINE complex<T> log1p(complex<T> z) {
  const complex<T> w = z + complex<T>(T(1));
  // |1 + z|^2 - 1 where that is small, which |1 + z| has few digits of.
  const T beyond = z.re * (T(2) + z.re) + z.im * z.im;
  const bool near = beyond > T(-0.5) && beyond < T(1);
  return {near ? T(0.5) * log1p(beyond) : log(abs(w)), angle(w)};
}

// ---- roots and powers ----------------------------------------------------------------------------

template <typename T>
KILN_INLINE complex<T> sqrt(complex<T> z) {
  if (isinf(z.im)) return {abs(z.im), z.im};
  if (z.re == T(0) && z.im == T(0)) return {T(0), z.im};
  if (isinf(z.re)) {
    const T none = isnan(z.im) ? z.im : T(0);
    return z.re > T(0) ? complex<T>(z.re, isnan(z.im) ? z.im : copysign(T(0), z.im))
                       : complex<T>(none, copysign(-z.re, z.im));
  }
  // Half of each, so that the sum stays finite.
  const T root = sqrt(T(0.5) * abs(z.re) + T(0.5) * abs(z));
  const T other = T(0.5) * z.im / root;
  return z.re >= T(0) ? complex<T>(root, other) : complex<T>(abs(other), copysign(root, z.im));
}

template <typename T>
KILN_INLINE complex<T> reciprocal(complex<T> z) {
  return complex<T>(T(1)) / z;
}

template <typename T>
KILN_INLINE complex<T> rsqrt(complex<T> z) {
  return complex<T>(T(1)) / sqrt(z);
}

template <typename T>
KILN_INLINE complex<T> sigmoid(complex<T> z) {
  return complex<T>(T(1)) / (complex<T>(T(1)) + exp(-z));
}

template <typename T>
KILN_INLINE complex<T> pow(complex<T> base, complex<T> exponent) {
  if (exponent == complex<T>(T(0))) return {T(1), T(0)};
  if (base == complex<T>(T(0))) {
    return exponent.re > T(0) ? complex<T>(T(0))
                              : complex<T>(detail::kNaN<T>, detail::kNaN<T>);
  }
  if (exponent.im == T(0)) {
    const T size = pow(abs(base), exponent.re), turn = exponent.re * angle(base);
    return {size * cos(turn), size * sin(turn)};
  }
  return exp(exponent * log(base));
}

// ---- trigonometric and hyperbolic functions, and their inverses (Kahan, 1987) ---------------------

template <typename T>
KILN_INLINE complex<T> sinh(complex<T> z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}
template <typename T>
KILN_INLINE complex<T> cosh(complex<T> z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}
template <typename T>
KILN_INLINE complex<T> tanh(complex<T> z) {
  constexpr T most = detail::pick<T>(10.f, 20.);
  const T s = sin(z.im), c = cos(z.im);
  if (abs(z.re) > most) {
    const T far = exp(T(-2) * abs(z.re));
    return {copysign(T(1), z.re), T(4) * s * c * far};
  }
  const T rise = sinh(z.re), run = cosh(z.re);
  const T below = rise * rise + c * c;
  return {rise * run / below, s * c / below};
}
template <typename T>
KILN_INLINE complex<T> sin(complex<T> z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}
template <typename T>
KILN_INLINE complex<T> cos(complex<T> z) {
  return {cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im))};
}
template <typename T>
KILN_INLINE complex<T> tan(complex<T> z) {
  return detail::over_i(tanh(detail::times_i(z)));
}

template <typename T>
KILN_INLINE complex<T> asin(complex<T> z) {
  const complex<T> less = sqrt(complex<T>(T(1) - z.re, -z.im));
  const complex<T> more = sqrt(complex<T>(T(1) + z.re, z.im));
  return {atan2(z.re, (less * more).re), asinh((conj(less) * more).im)};
}
template <typename T>
KILN_INLINE complex<T> acos(complex<T> z) {
  const complex<T> less = sqrt(complex<T>(T(1) - z.re, -z.im));
  const complex<T> more = sqrt(complex<T>(T(1) + z.re, z.im));
  return {T(2) * atan2(less.re, more.re), asinh((conj(more) * less).im)};
}
template <typename T>
KILN_INLINE complex<T> acosh(complex<T> z) {
  const complex<T> less = sqrt(complex<T>(z.re - T(1), z.im));
  const complex<T> more = sqrt(complex<T>(z.re + T(1), z.im));
  return {asinh((conj(less) * more).re), T(2) * atan2(less.im, more.re)};
}
template <typename T>
KILN_INLINE complex<T> asinh(complex<T> z) {
  return detail::over_i(asin(detail::times_i(z)));
}
template <typename T>
KILN_INLINE complex<T> atanh(complex<T> z) {
  // By its own symmetry: on the left the logarithm's argument would lose its digits near 0.
  const T re = abs(z.re), less = T(1) - re, square = z.im * z.im;
  const T size = T(0.25) * log1p(T(4) * re / (less * less + square));
  return {copysign(size, z.re), T(0.5) * atan2(T(2) * z.im, less * (T(1) + re) - square)};
}
template <typename T>
KILN_INLINE complex<T> atan(complex<T> z) {
  return detail::over_i(atanh(detail::times_i(z)));
}

}  // namespace kiln
