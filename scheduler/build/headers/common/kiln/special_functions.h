// The gamma function's logarithm and its derivative, the scaled error function, the inverse of the
// normal distribution, and modified Bessel functions of kiln/math.h.
#pragma once

#include <kiln/coefficients.h>
#include <kiln/elementary.h>
#include <kiln/error_functions.h>
#include <kiln/floats.h>
#include <kiln/trigonometry.h>
#include <kiln/types.h>

namespace kiln {

namespace detail {

// log(gamma(x)) for x > 0: a polynomial beside its roots 1 and 2, to which the recurrence
// gamma(x + 1) = x gamma(x) leads, and Stirling's series where x is large.
template <typename T>
KILN_INLINE T lgamma_positive(T x) {
  constexpr T large = pick<T>(5.f, 10.);
  constexpr T half_log_two_pi = pick<T>(0x1.d67f1cp-1f, 0x1.d67f1c864beb5p-1);
  if (x >= large) {
    const T z = T(1) / x;
    const T rest = fma(z, polynomial<Coefficients<T>::kStirling>(z * z), half_log_two_pi - T(0.5));
    return fma(x - T(0.5), log(x) - T(1), rest);
  }
  T factor = T(1), sign = T(1);
  for (; x > T(2.5); factor *= x) x -= T(1);
  if (x < T(1.5)) {
    sign = T(-1);
    for (; x < T(1.5); x += T(1)) factor *= x;
  }
  const T t = x - T(2);
  return fma(t * (x - T(1)), polynomial<Coefficients<T>::kLgamma>(t), sign * log(factor));
}

}  // namespace detail

// log |gamma(x)|: infinite at 0 and at the negative integers.
template <typename T>
KILN_INLINE T lgamma(T x) {
  using namespace detail;
  constexpr T tiny = pick<T>(0x1p-30f, 0x1p-60), pi = pick<T>(0x1.921fb6p+1f, 0x1.921fb54442d18p+1);
  if (isnan(x)) return x;
  const T a = abs(x);
  if (isinf(x)) return kInf<T>;
  if (a < tiny) return -log(a);
  if (x > T(0)) return lgamma_positive(x);
  const T r = abs(x - round(x));
  if (r == T(0)) return kInf<T>;
  return log(pi / sin(pi * r)) - lgamma_positive(T(1) + a);
}

namespace detail {

template <typename T>
KILN_INLINE T digamma_positive(T x) {
  constexpr T large = pick<T>(5.f, 10.);
  T sum = T(0);
  for (; x < large; x += T(1)) sum += T(1) / x;
  if (isinf(x)) return x;
  const T z = T(1) / x, square = z * z;
  return log(x) - T(0.5) * z - square * polynomial<Coefficients<T>::kDigamma>(square) - sum;
}

}  // namespace detail

// The derivative of log(gamma(x)): minus and plus infinity at 0 and -0, NaN at negative integers.
template <typename T>
KILN_INLINE T digamma(T x) {
  using namespace detail;
  constexpr T pi = pick<T>(0x1.921fb6p+1f, 0x1.921fb54442d18p+1);
  if (x == T(0)) return copysign(kInf<T>, -x);
  if (x > T(0)) return digamma_positive(x);
  const T r = x - round(x);
  if (isnan(x) || isinf(x) || r == T(0)) return kNaN<T>;
  return digamma_positive(T(1) - x) - pi / tan(pi * r);
}

// exp(x^2) erfc(x)
template <typename T>
KILN_INLINE T erfcx(T x) {
  using namespace detail;
  if (isnan(x)) return x;
  const T a = abs(x);
  T value;
  if (a < T(1)) {
    value = exp(a * a) * erfc(a);
  } else if (a <= pick<T>(11.f, 28.)) {
    const T t = (a - T(3)) / (a + T(3));
    value = polynomial<Coefficients<T>::kErfc>(t) / fma(T(2), a, T(1));
  } else {
    // The asymptotic series 1 - 1/2 z + 3/4 z^2 - 15/8 z^3 ...
    constexpr T inverse_root_pi = pick<T>(0x1.20dd76p-1f, 0x1.20dd750429b6dp-1);
    const T z = T(1) / a, s = T(-0.5) * z * z;
    const T far = fma(s, fma(s, fma(s, T(10395), T(945)), T(105)), T(15));
    const T tail = fma(s, fma(s, fma(s, far, T(3)), T(1)), T(1));
    value = inverse_root_pi * z * tail;
  }
  if (x >= T(0)) return value;
  const Pair<T> square = two_product(a, a);
  return isinf(square.hi) ? kInf<T> : T(2) * exp_scaled(square.hi, square.lo, 0) - value;
}

namespace detail {

// y of erfc(y) = q for any q from 0 to 1/2. Far out by Newton's method on the logarithm, in which
// erfc is nearly a parabola.
template <typename T>
KILN_INLINE T erfcinv_any(T q) {
  if (q > pick<T>(0x1p-20f, 0x1p-50)) return erfcinv(q);
  constexpr T pi = pick<T>(0x1.921fb6p+1f, 0x1.921fb54442d18p+1);
  constexpr T half_root_pi = pick<T>(0x1.c5bf8ap-1f, 0x1.c5bf891b4ef6bp-1);
  const T minus_log = -log(q);
  T y = sqrt(minus_log - T(0.5) * log(pi * minus_log));
  for (int i = 0; i < 3; ++i) {
    const T scaled = erfcx(y);
    y += (log(scaled) + fma(-y, y, minus_log)) * half_root_pi * scaled;
  }
  return y;
}

}  // namespace detail

// The inverse of the normal distribution: infinite at 0 and 1, NaN beyond.
template <typename T>
KILN_INLINE T ndtri(T p) {
  using namespace detail;
  constexpr T root_two = pick<T>(0x1.6a09e6p+0f, 0x1.6a09e667f3bcdp+0);
  if (!(p >= T(0) && p <= T(1))) return kNaN<T>;
  if (p == T(0) || p == T(1)) return p == T(0) ? -kInf<T> : kInf<T>;
  if (p < T(0.25)) return -root_two * erfcinv_any(T(2) * p);
  if (p > T(0.75)) return root_two * erfcinv_any(T(2) * (T(1) - p));
  return root_two * erfinv(T(2) * p - T(1));
}

namespace detail {

// sqrt(x) exp(-x) I(x) of a modified Bessel function for x >= 8, over sqrt(x).
template <const auto& C, typename T>
KILN_INLINE T bessel_i_large(T x) {
  return polynomial<C>(T(16) / x - T(1)) / sqrt(x);
}

// exp(x) e for x >= 0, where exp(x) alone may overflow.
template <typename T>
KILN_INLINE T times_exp(T e, T x) {
  constexpr T most = pick<T>(93.f, 715.);
  return x > most ? kInf<T> : exp_scaled(x, T(0), -64) * e * power_of_two<T>(64);
}

}  // namespace detail

// Modified Bessel functions of the first kind, of order 0 and 1; i0e and i1e times exp(-|x|). Those
// that grow are NaN at infinity, as torch's are.
template <typename T>
KILN_INLINE T i0(T x) {
  using namespace detail;
  const T a = abs(x);
  if (a < T(8)) return polynomial<Coefficients<T>::kI0Small>(a * a);
  return isfinite(x) ? times_exp(bessel_i_large<Coefficients<T>::kI0Large>(a), a) : kNaN<T>;
}

template <typename T>
KILN_INLINE T i0e(T x) {
  using namespace detail;
  const T a = abs(x);
  if (a < T(8)) return exp(-a) * polynomial<Coefficients<T>::kI0Small>(a * a);
  return isnan(x) ? x : bessel_i_large<Coefficients<T>::kI0Large>(a);
}

template <typename T>
KILN_INLINE T i1(T x) {
  using namespace detail;
  const T a = abs(x);
  if (a < T(8)) return x * polynomial<Coefficients<T>::kI1Small>(a * a);
  const T large = times_exp(bessel_i_large<Coefficients<T>::kI1Large>(a), a);
  return isfinite(x) ? copysign(large, x) : kNaN<T>;
}

template <typename T>
KILN_INLINE T i1e(T x) {
  using namespace detail;
  const T a = abs(x);
  if (a < T(8)) return exp(-a) * (x * polynomial<Coefficients<T>::kI1Small>(a * a));
  return isnan(x) ? x : copysign(bessel_i_large<Coefficients<T>::kI1Large>(a), x);
}

}  // namespace kiln
