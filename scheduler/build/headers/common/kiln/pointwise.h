// The pointwise functions of generated kernels that are neither operators nor in math.h: those on
// integers, and those whose rule for NaN, sign or rounding is torch's.
#pragma once

#include <kiln/arithmetic.h>
#include <kiln/fast.h>
#include <kiln/index.h>
#include <kiln/math.h>
#include <kiln/random.h>
#include <kiln/types.h>

namespace kiln {

template <typename T>
constexpr bool is_floating = __is_same(T, float) || __is_same(T, double);

// A NaN on either side is handed on.
template <typename T>
KILN_INLINE T maximum(T a, T b) {
  if constexpr (is_floating<T>) {
    return a != a || a > b ? a : b;
  } else {
    return a > b ? a : b;
  }
}

template <typename T>
KILN_INLINE T minimum(T a, T b) {
  if constexpr (is_floating<T>) {
    return a != a || a < b ? a : b;
  } else {
    return a < b ? a : b;
  }
}

template <typename T>
  requires(!is_floating<T>)
KILN_INLINE T abs(T x) {
  return x < T(0) ? negated(x) : x;
}

// -1, 0 or 1; 0 for NaN.
template <typename T>
KILN_INLINE T sign(T x) {
  return static_cast<T>((x > T(0)) - (x < T(0)));
}

// C's division and remainder of integers where C says nothing: by 0 the quotient has all its bits
// set and the remainder is the dividend; the least value by -1 wraps around. GPUs give values of
// their own there and a CPU's division traps, so it is never asked for them.
template <typename T>
struct Division {
  T quotient, remainder;
};

template <typename T>
KILN_INLINE Division<T> divided(T a, T b) {
  if (b == T(0)) return {static_cast<T>(~T(0)), a};
  if constexpr (T(-1) < T(0)) {
    if (b == T(-1)) return {negated(a), T(0)};
  }
  return {static_cast<T>(a / b), static_cast<T>(a % b)};
}

// Towards zero.
template <typename T>
KILN_INLINE T truncdiv(T a, T b) {
  if constexpr (is_floating<T>) {
    return trunc(a / b);
  } else {
    return divided(a, b).quotient;
  }
}

// The divisor's sign.
template <typename T>
KILN_INLINE T remainder(T a, T b) {
  if constexpr (is_floating<T>) {
    const T rest = fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  } else {
    const T rest = divided(a, b).remainder;
    return b != T(0) && rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b)
                                                                    : rest;
  }
}

// Towards minus infinity. By way of the remainder, so that the quotient is not rounded up to an
// integer first (0.9999999999 would be floored as 1).
template <typename T>
KILN_INLINE T floordiv(T a, T b) {
  if constexpr (is_floating<T>) {
    if (b == T(0)) return a / b;
    const T rest = fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (rest < T(0)) != (b < T(0))) quotient -= T(1);
    const T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + T(1) : whole;
  } else {
    const auto [whole, rest] = divided(a, b);
    return b != T(0) && rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(whole - 1)
                                                                    : whole;
  }
}

// C's remainder, the dividend's sign. Floats: math.h.
template <typename T>
  requires(!is_floating<T>)
KILN_INLINE T fmod(T a, T b) {
  return divided(a, b).remainder;
}

// Integer powers by squaring; a negative exponent gives 0 unless the base is 1 or -1.
template <typename T>
  requires(!is_floating<T>)
KILN_INLINE T pow(T base, T exponent) {
  if (exponent < T(0)) {
    if (base == T(1)) return T(1);
    if (base == T(-1)) return (exponent & 1) ? T(-1) : T(1);
    return T(0);
  }
  T result = T(1);
  for (; exponent > T(0); exponent = static_cast<T>(exponent >> 1)) {
    if (exponent & 1) result = times(result, base);
    base = times(base, base);
  }
  return result;
}

// The greatest common divisor, of their magnitudes; 0 of two zeros.
template <typename T>
KILN_INLINE T gcd(T a, T b) {
  a = abs(a), b = abs(b);
  while (b != T(0)) {
    const T rest = static_cast<T>(a % b);
    a = b;
    b = rest;
  }
  return a;
}

// The next number after a on the way to b.
template <typename T>
KILN_INLINE T nextafter(T a, T b) {
  using Int = typename detail::Format<T>::Int;
  if (a != a || b != b) return a + b;
  if (a == b) return b;
  if (a == T(0)) return copysign(bit_cast<T>(Int(1)), b);
  const Int step = (a < b) == (a > T(0)) ? 1 : -1;
  return bit_cast<T>(static_cast<Int>(bit_cast<Int>(a) + step));
}

}  // namespace kiln
