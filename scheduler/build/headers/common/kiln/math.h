// Elementary functions of float and double for kernels, alike on AMD GPUs and the CPU emulation.
//
// They need no device library. Errors are at most, in units in the last place of the result, what
// stands beside each name (float, double); a test holds this over the whole range:
//
//   sqrt 0.5  reciprocal 0.5  floor ceil trunc round fmod exact
//   exp 1.5  exp2 1.5  expm1 2  log 1.5  log2 2  log10 2  log1p 2  rsqrt 1.5  sigmoid 3
//   sin cos 1.5  tan 3  asin acos atan 3  atan2 3  sinh cosh tanh 3  asinh acosh atanh 4
//   erf 1.5  erfc 5  erfinv 2.5  hypot 2  pow 1.5
//
// Special values are those of C's <math.h>. Denormal numbers are kept.
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

template <typename T>
KILN_INLINE T copysign(T magnitude, T sign) {
  if constexpr (__is_same(T, float)) return __builtin_copysignf(magnitude, sign);
  else return __builtin_copysign(magnitude, sign);
}

// The sign of x, and the remainder is exact.
template <typename T>
KILN_INLINE T fmod(T x, T y) {
  if constexpr (__is_same(T, float)) return __builtin_fmodf(x, y);
  else return __builtin_fmod(x, y);
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

// ---- error functions -----------------------------------------------------------------------------

namespace detail {

// erfc(x) for x >= 1: exp(-x^2) p((x - 3) / (x + 3)) / (1 + 2 x), after Shepherd and Laframboise,
// with x^2 in two parts so that the exponential keeps its last bits.
template <typename T>
KILN_INLINE T erfc_tail(T x) {
  constexpr T most = pick<T>(11.f, 28.);
  x = x > most ? most : x;
  const Pair<T> square = two_product(x, x);
  const T t = (x - T(3)) / (x + T(3));
  const T shape = polynomial<Coefficients<T>::kErfc>(t) / fma(T(2), x, T(1));
  // Scaled up so that only the last product rounds a denormal result.
  constexpr int up = 64;
  return exp_scaled(-square.hi, -square.lo, up) * shape * power_of_two<T>(-up);
}

}  // namespace detail

template <typename T>
KILN_INLINE T erf(T x) {
  using namespace detail;
  const T a = abs(x);
  const T z = a * a;
  const T small = fma(x, polynomial<Coefficients<T>::kErf>(z), x);
  if (isnan(x)) return x;
  return a < T(1) ? small : copysign(T(1) - erfc_tail(a), x);
}

template <typename T>
KILN_INLINE T erfc(T x) {
  using namespace detail;
  const T a = abs(x);
  if (isnan(x)) return x;
  if (a < T(0.5)) return T(1) - erf(x);
  if (a < T(1)) {
    const T value = T(0.5) - fma(a, polynomial<Coefficients<T>::kErf>(a * a), a - T(0.5));
    return x > T(0) ? value : T(1) + erf(a);
  }
  const T tail = erfc_tail(a);
  return x > T(0) ? tail : T(2) - tail;
}

namespace detail {

// y of erfc(y) = q for 0 < q < 1/2: a polynomial in sqrt(-log(q)), the variable of M. Giles,
// "Approximating the erfinv function" (GPU Computing Gems, Jade Edition, 2011), and one step of
// Halley's method, which cubes its error. An error of erfc counts erfc(y) / (y erfc'(y)) in y.
template <typename T>
KILN_INLINE T erfcinv(T q) {
  const T y = polynomial<Coefficients<T>::kErfcinvGuess>(sqrt(-log(q)) - T(3));
  constexpr T half_root_pi = pick<T>(0x1.c5bf8ap-1f, 0x1.c5bf891b4ef6bp-1);
  const T newton = (q - erfc(y)) * half_root_pi * exp(y * y);
  return y - newton / fma(newton, y, T(1));
}

}  // namespace detail

// 1 - |x| is exact where the second form is used.
template <typename T>
KILN_INLINE T erfinv(T x) {
  using namespace detail;
  const T a = abs(x);
  if (a <= T(0.5)) return fma(x, polynomial<Coefficients<T>::kErfinv>(x * x), x);
  if (a < T(1)) return copysign(erfcinv(T(1) - a), x);
  return a == T(1) ? copysign(kInf<T>, x) : isnan(x) ? x : kNaN<T>;
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
  const bool odd = whole && abs(y) < pick<T>(0x1p24f, 0x1p53) && abs(fmod(y, T(2))) == T(1);
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
