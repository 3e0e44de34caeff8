// Roundings, roots, exponentials, logarithms and powers of kiln/math.h.
#pragma once

#include <kiln/coefficients.h>
#include <kiln/floats.h>
#include <kiln/types.h>

namespace kiln {

// ---- rounding, tests, roots: instructions of the hardware ----------------------------------------

#define KILN_BUILTIN(name, builtin)                                      \
  KILN_INLINE float name(float x) { return __builtin_##builtin##f(x); }  \
  KILN_INLINE double name(double x) { return __builtin_##builtin(x); }
KILN_BUILTIN(floor, floor)
KILN_BUILTIN(ceil, ceil)
KILN_BUILTIN(trunc, trunc)
KILN_BUILTIN(round, roundeven)
KILN_BUILTIN(abs, fabs)
KILN_BUILTIN(sqrt, sqrt)
#undef KILN_BUILTIN

template <typename T>
KILN_INLINE bool isnan(T x) {
  return __builtin_isnan(x);
}
template <typename T>
KILN_INLINE bool isinf(T x) {
  return __builtin_isinf(x);
}
template <typename T>
KILN_INLINE bool isfinite(T x) {
  return __builtin_isfinite(x);
}

// The nearest number that float has, in whatever type.
template <typename T>
KILN_INLINE T float32_of(T x) {
  return static_cast<T>(static_cast<float>(x));
}

template <typename T>
KILN_INLINE T copysign(T magnitude, T sign) {
  if constexpr (__is_same(T, float)) return __builtin_copysignf(magnitude, sign);
  else return __builtin_copysign(magnitude, sign);
}

namespace detail {

// a - n * b for the whole n that leaves something from 0 to b, where a >= b > 0: long division of
// the mantissas, as many bits at a time as a word has room for.
template <typename T>
KILN_INLINE T rest_of_division(T a, T b) {
  using F = Format<T>;
  constexpr int kRoom = 63 - F::mantissa;
  constexpr uint64_t kLeading = uint64_t{1} << F::mantissa;
  const uint64_t a_bits = bit_cast<typename F::Bits>(a), b_bits = bit_cast<typename F::Bits>(b);
  const int a_exponent = static_cast<int>(a_bits >> F::mantissa);  // of a positive number
  const int b_exponent = static_cast<int>(b_bits >> F::mantissa);
  const uint64_t divisor = (b_bits & (kLeading - 1)) | (b_exponent ? kLeading : 0);
  uint64_t rest = (a_bits & (kLeading - 1)) | (a_exponent ? kLeading : 0);
  const int least = b_exponent ? b_exponent : 1;  // denormal numbers have that of the smallest
  int left = (a_exponent ? a_exponent : 1) - least;
  do {
    const int bits = left < kRoom ? left : kRoom;
    rest = (rest << bits) % divisor;
    left -= bits;
  } while (left > 0 && rest != 0);
  return scale(static_cast<T>(rest), least - F::bias - F::mantissa);
}

}  // namespace detail

// The sign of x, and the remainder is exact. Compilers expand their builtin to x - trunc(x / y) * y
// on some GPUs, which is nothing like it where the quotient has more digits than a T.
template <typename T>
KILN_INLINE T fmod(T x, T y) {
  using namespace detail;
  const T a = abs(x), b = abs(y);
  if (!(a < kInf<T>) || !(b > T(0))) return kNaN<T>;
  if (a < b) return x;
  const T quotient = a / b;
  if (quotient >= pick<T>(0x1p23f, 0x1p52)) return copysign(rest_of_division(a, b), x);
  // The quotient's rounding may have reached the next integer; the rest is exact.
  const T rest = fma(-trunc(quotient), b, a);
  return copysign(rest < T(0) ? rest + b : rest, x);
}

template <typename T>
KILN_INLINE T reciprocal(T x) {
  return T(1) / x;
}

template <typename T>
KILN_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}

template <typename T>
KILN_INLINE T hypot(T x, T y) {
  x = abs(x), y = abs(y);
  const T large = x > y ? x : y, small = x > y ? y : x;
  if (isinf(x) || isinf(y)) return detail::kInf<T>;
  if (isnan(x) || isnan(y) || large == T(0)) return x + y;
  const T ratio = small / large;
  return large * sqrt(detail::fma(ratio, ratio, T(1)));
}

// ---- exponentials --------------------------------------------------------------------------------

namespace detail {

// exp(x + lo) * 2^shift, where lo is far below x.
template <typename T>
KILN_INLINE T exp_scaled(T x, T lo, int shift) {
  constexpr T most = pick<T>(128.f, 1000.);
  const T inside = x > most ? most : x < -most ? -most : x;
  const T n = round(inside * kLog2E<T>);
  const T r = fma(-n, kLn2<T>.lo, fma(-n, kLn2<T>.hi, inside)) + (inside == x ? lo : T(0));
  const T value = T(1) + fma(r * r, polynomial<Coefficients<T>::kExp>(r), r);
  return scale(value, to_int(n) + shift);
}

}  // namespace detail

template <typename T>
KILN_INLINE T exp(T x) {
  return detail::exp_scaled(x, T(0), 0);
}

template <typename T>
KILN_INLINE T exp2(T x) {
  constexpr T most = detail::pick<T>(250.f, 2000.);
  const T inside = x > most ? most : x < -most ? -most : x;
  const T n = round(inside), r = inside - n;
  const T value = detail::fma(r, detail::polynomial<detail::Coefficients<T>::kExp2>(r), T(1));
  return detail::scale(value, detail::to_int(n));
}

template <typename T>
KILN_INLINE T expm1(T x) {
  using namespace detail;
  constexpr T most = pick<T>(30.f, 60.);
  if (x > most) return exp(x) - T(1);
  const T inside = x < -most ? -most : x;
  const T n = round(inside * kLog2E<T>);
  const T r = fma(-n, kLn2<T>.lo, fma(-n, kLn2<T>.hi, inside));
  const T small = fma(r * r, polynomial<Coefficients<T>::kExp>(r), r);
  const T power = power_of_two<T>(to_int(n));
  const T value = n == T(0) ? small : fma(power, small, power - T(1));
  return x == T(0) ? x : value;
}

template <typename T>
KILN_INLINE T sigmoid(T x) {
  const T small = exp(-abs(x));
  return (x < T(0) ? small : T(1)) / (T(1) + small);
}

// ---- logarithms ----------------------------------------------------------------------------------

namespace detail {

// log(m) for sqrt(1/2) <= m < sqrt(2): f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f), as
// log((1 + s) / (1 - s)) = 2 s + s^3 q(s^2) with the large part of 2 s, f, kept exact.
template <typename T>
KILN_INLINE Pair<T> log_reduced(T m) {
  KILN_EXACT
  const T f = m - T(1), s = f / (T(2) + f), z = s * s;
  const T half_square = T(0.5) * f * f;
  const T rest = z * polynomial<Coefficients<T>::kLog>(z);
  return {f, fma(s, half_square + rest, -half_square)};
}

// Zero, negative, infinite and NaN arguments of a logarithm.
template <typename T>
KILN_INLINE T log_special(T x, T value) {
  value = x == kInf<T> ? x : value;
  value = x == T(0) ? -kInf<T> : value;
  return x < T(0) ? kNaN<T> : isnan(x) ? x : value;
}

}  // namespace detail

template <typename T>
KILN_INLINE T log(T x) {
  using namespace detail;
  int e = 0;
  const Pair<T> m = log_reduced(normalize(x, e));
  const T n = static_cast<T>(e);
  return log_special(x, fma(n, kLn2Short<T>.hi, m.hi + fma(n, kLn2Short<T>.lo, m.lo)));
}

template <typename T>
KILN_INLINE T log2(T x) {
  using namespace detail;
  int e = 0;
  const Pair<T> m = log_reduced(normalize(x, e));
  return log_special(x, fma(m.hi + m.lo, kLog2E<T>, static_cast<T>(e)));
}

template <typename T>
KILN_INLINE T log10(T x) {
  using namespace detail;
  int e = 0;
  const Pair<T> m = log_reduced(normalize(x, e));
  const T n = static_cast<T>(e);
  const T low = fma(m.hi + m.lo, kLog10E<T>, n * kLog10Of2Short<T>.lo);
  return log_special(x, fma(n, kLog10Of2Short<T>.hi, low));
}

template <typename T>
KILN_INLINE T log1p(T x) {
  KILN_EXACT
  const T u = T(1) + x;
  if (!(u > T(0)) || isinf(u)) return detail::log_special(u, u);
  // The first-order term of what was lost in 1 + x.
  const T lost = u > T(2) ? T(1) - (u - x) : x - (u - T(1));
  return x == T(0) ? x : log(u) + lost / u;
}

// ---- powers --------------------------------------------------------------------------------------

namespace detail {

// log(x) in two parts, to some 12 bits beyond T, for a positive finite x.
template <typename T>
KILN_INLINE Pair<T> log_pair(T x) {
  KILN_EXACT
  int e = 0;
  const T f = normalize(x, e) - T(1);
  const Pair<T> d = fast_two_sum(T(2), f);
  const T s = f / d.hi;
  const T s_lo = (fma(-s, d.hi, f) - s * d.lo) / d.hi;
  // 2 s + 2/3 s^3 + s^5 tail(s^2), the first two in pairs
  const Pair<T> z = two_product(s, s);
  const T z_lo = fma(T(2) * s, s_lo, z.lo);
  constexpr T third_lo = pick<T>(-0x1.555556p-26f, 0x1.5555555555555p-55);
  constexpr T third = pick<T>(0x1.555556p-1f, 0x1.5555555555555p-1);
  const Pair<T> c = two_product(z.hi, third);
  const T c_lo = c.lo + fma(z.hi, third_lo, z_lo * third) +
                 z.hi * z.hi * polynomial<Coefficients<T>::kLogTail>(z.hi);
  const Pair<T> cubic = two_product(s, c.hi);
  const T cubic_lo = cubic.lo + fma(s, c_lo, s_lo * c.hi);
  const T n = static_cast<T>(e);
  const Pair<T> whole = two_sum(n * kLn2Short<T>.hi, T(2) * s);
  const Pair<T> sum = two_sum(whole.hi, cubic.hi);
  const T rest = sum.lo + (whole.lo + (fma(n, kLn2Short<T>.lo, T(2) * s_lo) + cubic_lo));
  return fast_two_sum(sum.hi, rest);
}

}  // namespace detail

template <typename T>
KILN_INLINE T pow(T x, T y) {
  using namespace detail;
  if (y == T(1)) return x;
  if (y == T(2)) return x * x;
  if (y == T(0) || x == T(1)) return T(1);
  if (isnan(x) || isnan(y)) return x + y;
  const T a = abs(x);
  const bool whole = trunc(y) == y;
  const bool odd = whole && abs(y) < pick<T>(0x1p24f, 0x1p53) && trunc(T(0.5) * y) != T(0.5) * y;
  const T sign = odd ? copysign(T(1), x) : T(1);
  if (isinf(y)) {
    if (a == T(1)) return T(1);
    return (a > T(1)) == (y > T(0)) ? kInf<T> : T(0);
  }
  if (a == T(0) || isinf(a)) return (a == T(0)) == (y > T(0)) ? sign * T(0) : sign * kInf<T>;
  if (x < T(0) && !whole) return kNaN<T>;
  const Pair<T> log_a = log_pair(a);
  // Beyond this the result is 0 or infinite, and products of the parts would overflow.
  constexpr T most = pick<T>(0x1p40f, 0x1p80);
  const T bounded = y > most ? most : y < -most ? -most : y;
  const Pair<T> product = two_product(bounded, log_a.hi);
  return sign * exp_scaled(product.hi, fma(bounded, log_a.lo, product.lo), 0);
}

}  // namespace kiln
