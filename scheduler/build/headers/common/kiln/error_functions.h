// The error function of kiln/math.h, its complement, and its inverse.
#pragma once

#include <kiln/coefficients.h>
#include <kiln/elementary.h>
#include <kiln/floats.h>
#include <kiln/types.h>

namespace kiln {

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

}  // namespace kiln
