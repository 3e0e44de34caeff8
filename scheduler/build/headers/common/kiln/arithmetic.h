// Sums, differences and products of any type; of integers they wrap around, as torch's do. C++
// leaves it open what a signed one gives that is too large, and a compiler that takes a square to
// be positive leaves out what `%` and `>>` do for negative numbers.
#pragma once

#include <kiln/floats.h>
#include <kiln/types.h>

namespace kiln {

// In which the arithmetic of any integer wraps: its lower bits are those of a narrower type's own.
using Modular = uint64_t;

template <typename T>
KILN_INLINE constexpr T plus(T a, T b) {
  if constexpr (__is_integral(T)) return static_cast<T>(Modular(a) + Modular(b));
  else return a + b;
}

// Of floats: of a and b as they are, where one of them is a product that is rounded elsewhere. What
// is taken from the greatest of some products is 0 for the greatest then, not the product's own
// rounding, which an instruction that multiplies and subtracts would leave.
template <typename T>
KILN_INLINE constexpr T minus(T a, T b) {
  KILN_EXACT
  if constexpr (__is_integral(T)) return static_cast<T>(Modular(a) - Modular(b));
  else return a - b;
}

template <typename T>
KILN_INLINE constexpr T times(T a, T b) {
  if constexpr (__is_integral(T)) return static_cast<T>(Modular(a) * Modular(b));
  else return a * b;
}

template <typename T>
KILN_INLINE constexpr T negated(T a) {
  if constexpr (__is_integral(T)) return static_cast<T>(-Modular(a));
  else return -a;
}

}  // namespace kiln
