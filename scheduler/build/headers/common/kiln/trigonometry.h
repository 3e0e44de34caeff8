// Trigonometric and hyperbolic functions of kiln/math.h, and their inverses.
#pragma once

#include <kiln/coefficients.h>
#include <kiln/elementary.h>
#include <kiln/floats.h>
#include <kiln/types.h>

namespace kiln {

// ---- trigonometry --------------------------------------------------------------------------------

namespace detail {

// Payne and Hanek: |x| = integer * 2^e; of 2 / pi only the bits from 2^(2 - e) down matter, since
// those above give whole turns. 192 of them leave a fraction right to 2^-137.
template <typename T>
KILN_INLINE Pair<T> reduce_large(T x, int& quadrant) {
  KILN_EXACT
  using Wide = unsigned __int128;
  const uint64_t bits = bit_cast<uint64_t>(static_cast<double>(abs(x)));
  const uint64_t integer = (bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
  const int e = static_cast<int>(bits >> 52) - 1023 - 52;
  const int first_bit = e - 2 + 64;  // the table begins 64 bits before the binary point
  static constexpr uint64_t table[] = KILN_TWO_OVER_PI;
  const uint64_t* words = table + first_bit / 64;
  const int shift = first_bit % 64;
  const auto window = [&](int i) {
    return static_cast<uint64_t>(((Wide{words[i]} << 64 | words[i + 1]) << shift) >> 64);
  };
  // integer * window modulo 2^192: 2 bits of quadrant, 190 of fraction.
  const Wide low = Wide{integer} * window(2);
  const Wide middle = Wide{integer} * window(1) + (low >> 64);
  const uint64_t high = integer * window(0) + static_cast<uint64_t>(middle >> 64);
  Wide fraction = (Wide{high} << 64 | static_cast<uint64_t>(middle)) << 2;
  fraction |= static_cast<uint64_t>(low) >> 62;
  const bool up = fraction >> 127 != 0;  // to the nearest quadrant
  quadrant = static_cast<int>(((high >> 62) + up) & 3);
  if (up) fraction = -fraction;
  const double head = static_cast<double>(static_cast<uint64_t>(fraction >> 75)) * 0x1p-53;
  const double tail = static_cast<double>(static_cast<uint64_t>(fraction >> 11)) * 0x1p-117;
  const Pair<double> turn = fast_two_sum(head, tail);
  const Pair<double> product = two_product(turn.hi, kHalfPi<double>.hi);
  const double rest = fma(turn.hi, kHalfPi<double>.lo, turn.lo * kHalfPi<double>.hi);
  const Pair<double> angle = fast_two_sum(product.hi, product.lo + rest);
  const double sign = up ? -1.0 : 1.0;
  const T hi = static_cast<T>(angle.hi);
  const T lo = static_cast<T>((angle.hi - static_cast<double>(hi)) + angle.lo);
  return {static_cast<T>(sign) * hi, static_cast<T>(sign) * lo};
}

// |x| = quadrant * pi / 2 + (hi + lo), |hi| at most about pi / 4, for a finite x.
template <typename T>
KILN_INLINE Pair<T> reduce(T x, int& quadrant) {
  const T a = abs(x);
  if (a >= pick<T>(0x1p16f, 0x1p28)) return reduce_large(x, quadrant);
  const T n = round(a * kTwoOverPiNear<T>);
  quadrant = to_int(n) & 3;
  const T first = fma(-n, kHalfPi<T>.hi, a);  // exact
  const Pair<T> product = two_product(n, kHalfPi<T>.lo);
  const Pair<T> sum = two_sum(first, -product.hi);
  return fast_two_sum(sum.hi, sum.lo - fma(n, kHalfPiRest<T>, product.lo));
}

template <typename T>
KILN_INLINE T sin_reduced(Pair<T> r) {
  const T z = r.hi * r.hi;
  const T tail = z * r.hi * polynomial<Coefficients<T>::kSin>(z);
  return r.hi + (tail + fma(T(-0.5) * z, r.lo, r.lo));
}

template <typename T>
KILN_INLINE T cos_reduced(Pair<T> r) {
  KILN_EXACT
  const T z = r.hi * r.hi, half = T(0.5) * z, w = T(1) - half;
  const T tail = z * z * polynomial<Coefficients<T>::kCos>(z);
  return w + (((T(1) - w) - half) + fma(-r.hi, r.lo, tail));
}

// sin(|x| + shift * pi / 2)
template <typename T>
KILN_INLINE T sine_of_quadrant(T x, int shift) {
  int quadrant = 0;
  const Pair<T> r = reduce(x, quadrant);
  quadrant += shift;
  const T value = quadrant & 1 ? cos_reduced(r) : sin_reduced(r);
  return quadrant & 2 ? -value : value;
}

}  // namespace detail

template <typename T>
KILN_INLINE T sin(T x) {
  if (!isfinite(x)) return detail::kNaN<T>;
  const T value = detail::sine_of_quadrant(x, 0);
  return x == T(0) ? x : x < T(0) ? -value : value;
}

template <typename T>
KILN_INLINE T cos(T x) {
  return isfinite(x) ? detail::sine_of_quadrant(x, 1) : detail::kNaN<T>;
}

template <typename T>
KILN_INLINE T tan(T x) {
  using namespace detail;
  if (!isfinite(x)) return kNaN<T>;
  int quadrant = 0;
  const Pair<T> r = reduce(x, quadrant);
  const T s = sin_reduced(r), c = cos_reduced(r);
  const T value = quadrant & 1 ? -c / s : s / c;
  return x == T(0) ? x : x < T(0) ? -value : value;
}

template <typename T>
KILN_INLINE T atan(T x) {
  using namespace detail;
  constexpr T low = pick<T>(0x1.a8279ap-2f, 0x1.a827999fcef32p-2);  // tan(pi / 8)
  constexpr T high = pick<T>(0x1.3504f4p+1f, 0x1.3504f333f9de6p+1);
  const T a = abs(x);
  const bool middle = a > low && a <= high, large = a > high;
  const T r = large ? T(-1) / a : middle ? (a - T(1)) / (a + T(1)) : a;
  const T share = large ? T(1) : middle ? T(0.5) : T(0);
  const T z = r * r;
  const T tail = fma(z * r, polynomial<Coefficients<T>::kAtan>(z), share * kHalfPi<T>.lo);
  return isnan(x) ? x : copysign(share * kHalfPi<T>.hi + (r + tail), x);
}

template <typename T>
KILN_INLINE T atan2(T y, T x) {
  using namespace detail;
  if (isnan(x) || isnan(y)) return x + y;
  const T ax = abs(x), ay = abs(y);
  const bool negative = copysign(T(1), x) < T(0);
  const bool equal = ax == ay;  // both may be zero or infinite
  const T ratio = ay > ax ? ax / ay : ay / ax;
  T angle = atan(equal ? (ax == T(0) ? T(0) : T(1)) : ratio);
  if (ay > ax) angle = kHalfPi<T>.hi - (angle - kHalfPi<T>.lo);
  if (negative) angle = T(2) * kHalfPi<T>.hi - (angle - T(2) * kHalfPi<T>.lo);
  return copysign(angle, y);
}

namespace detail {

// asin(r) for 0 <= r <= 1/2
template <typename T>
KILN_INLINE T asin_reduced(T r) {
  const T z = r * r;
  return fma(z * r, polynomial<Coefficients<T>::kAsin>(z), r);
}

}  // namespace detail

template <typename T>
KILN_INLINE T asin(T x) {
  using namespace detail;
  const T a = abs(x);
  const T near_one = kHalfPi<T>.hi - (T(2) * asin_reduced(sqrt(T(0.5) * (T(1) - a))) -
                                      kHalfPi<T>.lo);
  return isnan(x) ? x : copysign(a <= T(0.5) ? asin_reduced(a) : near_one, x);
}

template <typename T>
KILN_INLINE T acos(T x) {
  using namespace detail;
  const T a = abs(x);
  if (a <= T(0.5)) return kHalfPi<T>.hi - (copysign(asin_reduced(a), x) - kHalfPi<T>.lo);
  const T near_one = T(2) * asin_reduced(sqrt(T(0.5) * (T(1) - a)));
  return x > T(0) ? near_one : T(2) * kHalfPi<T>.hi - (near_one - T(2) * kHalfPi<T>.lo);
}

// ---- hyperbolic functions ------------------------------------------------------------------------

template <typename T>
KILN_INLINE T sinh(T x) {
  const T a = abs(x);
  const T t = expm1(a > T(20) ? T(20) : a);
  const T value = a > T(20) ? detail::exp_scaled(a, T(0), -1) : T(0.5) * (t + t / (t + T(1)));
  return isnan(x) ? x : copysign(value, x);
}

template <typename T>
KILN_INLINE T cosh(T x) {
  const T half = detail::exp_scaled(abs(x), T(0), -1);  // exp(|x|) / 2
  return half + T(0.25) / half;
}

template <typename T>
KILN_INLINE T tanh(T x) {
  const T a = abs(x);
  const T t = expm1(a > T(22) ? T(44) : T(2) * a);
  return isnan(x) ? x : copysign(t / (t + T(2)), x);
}

template <typename T>
KILN_INLINE T asinh(T x) {
  using namespace detail;
  const T a = abs(x);
  const T small = log1p(a + a * a / (T(1) + sqrt(fma(a, a, T(1)))));
  const T value = a > pick<T>(0x1p14f, 0x1p30) ? log(a) + kLn2<T>.hi : small;
  return isnan(x) ? x : copysign(value, x);
}

template <typename T>
KILN_INLINE T acosh(T x) {
  using namespace detail;
  const T t = x - T(1);
  const T small = log1p(t + sqrt(fma(t, t, T(2) * t)));
  return x > pick<T>(0x1p14f, 0x1p30) ? log(x) + kLn2<T>.hi : x < T(1) ? kNaN<T> : small;
}

template <typename T>
KILN_INLINE T atanh(T x) {
  const T a = abs(x);
  const T value = T(0.5) * log1p(T(2) * a / (T(1) - a));
  const T outside = a == T(1) ? detail::kInf<T> : detail::kNaN<T>;
  return isnan(x) ? x : copysign(a < T(1) ? value : outside, x);
}

}  // namespace kiln
