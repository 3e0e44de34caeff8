// The parts of a float or double, and arithmetic on pairs of them. Used by kiln/math.h.
#pragma once

#include <kiln/types.h>

// The sums of pairs rely on each operation being rounded by itself, whatever flags a user sets.
#define KILN_EXACT _Pragma("clang fp contract(off) reassociate(off)")

namespace kiln::detail {

template <typename T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  using Int = int32_t;
  static constexpr int mantissa = 23, bias = 127;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  using Int = int64_t;
  static constexpr int mantissa = 52, bias = 1023;
};

// A constant in two parts: `hi` is the nearest T, `lo` the nearest to what is missing.
template <typename T>
struct Pair {
  T hi, lo;
};

template <typename T>
KILN_INLINE constexpr T pick(float as_float, double as_double) {
  if constexpr (__is_same(T, float)) return as_float;
  else return as_double;
}

template <typename T>
constexpr Pair<T> kLn2 = {pick<T>(0x1.62e43p-1f, 0x1.62e42fefa39efp-1),
                          pick<T>(-0x1.05c61p-29f, 0x1.abc9e3b39803fp-56)};
// The same with so few bits in `hi` that an exponent times it is exact.
template <typename T>
constexpr Pair<T> kLn2Short = {pick<T>(0x1.62e4p-1f, 0x1.62e42fefap-1),
                               pick<T>(0x1.7f7d1cp-20f, 0x1.cf79abc9e3b3ap-40)};
template <typename T>
constexpr T kLog2E = pick<T>(0x1.715476p+0f, 0x1.71547652b82fep+0);
template <typename T>
constexpr T kLog10E = pick<T>(0x1.bcb7b2p-2f, 0x1.bcb7b1526e50ep-2);
template <typename T>
constexpr Pair<T> kLog10Of2Short = {pick<T>(0x1.3441p-2f, 0x1.34413509fp-2),
                                    pick<T>(0x1.a84fbcp-21f, 0x1.e7fbcc47c4acdp-40)};
template <typename T>
constexpr Pair<T> kHalfPi = {pick<T>(0x1.921fb6p+0f, 0x1.921fb54442d18p+0),
                             pick<T>(-0x1.777a5cp-25f, 0x1.1a62633145c07p-54)};
template <typename T>
constexpr T kHalfPiRest = pick<T>(-0x1.ee59dap-50f, -0x1.f1976b7ed8fbcp-110);
template <typename T>
constexpr T kTwoOverPiNear = pick<T>(0x1.45f306p-1f, 0x1.45f306dc9c883p-1);
template <typename T>
constexpr T kInf = pick<T>(__builtin_inff(), __builtin_inf());
template <typename T>
constexpr T kNaN = pick<T>(__builtin_nanf(""), __builtin_nan(""));

template <typename T>
KILN_INLINE T fma(T a, T b, T c) {
  if constexpr (__is_same(T, float)) return __builtin_fmaf(a, b, c);
  else return __builtin_fma(a, b, c);
}

// By Horner's rule. Each coefficient is a constant of the instruction: an array that the kernel
// reads would be loaded from memory, since HIP lets the host overwrite constants of the device.
template <const auto& C, int I = 0, typename T>
KILN_INLINE T polynomial(T x) {
  constexpr T coefficient = C[I];
  if constexpr (I + 1 == sizeof(C) / sizeof(C[0])) {
    return coefficient;
  } else {
    return fma(polynomial<C, I + 1>(x), x, coefficient);
  }
}

// 2^n for an n whose power is a normal number.
template <typename T>
KILN_INLINE T power_of_two(int n) {
  using F = Format<T>;
  return bit_cast<T>(static_cast<typename F::Bits>(n + F::bias) << F::mantissa);
}

// x * 2^n, rounded once, for |n| up to twice the range of a normal exponent.
template <typename T>
KILN_INLINE T scale(T x, int n) {
#if defined(__AMDGCN__)  // one instruction there, a call of the C library elsewhere
  if constexpr (__is_same(T, float)) return __builtin_ldexpf(x, n);
  else return __builtin_ldexp(x, n);
#else
  const int half = n / 2;
  return x * power_of_two<T>(half) * power_of_two<T>(n - half);
#endif
}

// The integer nearest to x, for |x| far below 2^31; 0 for NaN, which C++ leaves undefined.
template <typename T>
KILN_INLINE int to_int(T x) {
  return x == x ? static_cast<int>(x) : 0;
}

// x = m * 2^e with sqrt(1/2) <= m < sqrt(2), for a positive finite x.
template <typename T>
KILN_INLINE T normalize(T x, int& e) {
  using F = Format<T>;
  using Int = typename F::Int;
  const bool tiny = x < power_of_two<T>(1 - F::bias);
  x = tiny ? x * power_of_two<T>(F::mantissa + 2) : x;
  const Int bits = bit_cast<Int>(x);
  constexpr Int root_half =
      bit_cast<Int>(pick<T>(0x1.6a09e6p-1f, 0x1.6a09e667f3bcdp-1));
  const Int exponent = (bits - root_half) >> F::mantissa;
  e = static_cast<int>(exponent) - (tiny ? F::mantissa + 2 : 0);
  return bit_cast<T>(static_cast<Int>(bits - (exponent << F::mantissa)));
}

// a + b exactly, where |a| >= |b| or a is 0.
template <typename T>
KILN_INLINE Pair<T> fast_two_sum(T a, T b) {
  KILN_EXACT
  const T sum = a + b;
  return {sum, b - (sum - a)};
}

template <typename T>
KILN_INLINE Pair<T> two_sum(T a, T b) {
  KILN_EXACT
  const T sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

template <typename T>
KILN_INLINE Pair<T> two_product(T a, T b) {
  KILN_EXACT
  const T product = a * b;
  return {product, fma(a, b, -product)};
}

}  // namespace kiln::detail
