// Integer arithmetic of generated indices: Python's division and remainder, and indices that are
// read from memory.
#pragma once

#include <stdint.h>

#ifndef KILN_INLINE
#define KILN_INLINE __host__ __device__ inline __attribute__((always_inline))
#endif

namespace kiln {

// Rounds towards minus infinity.
template <typename A, typename B>
KILN_INLINE constexpr auto floor_div(A a, B b) {
  auto quotient = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? quotient - 1 : quotient;
}

// Has the sign of the divisor.
template <typename A, typename B>
KILN_INLINE constexpr auto floor_mod(A a, B b) {
  auto remainder = a % b;
  return (remainder != 0 && (remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

template <typename A, typename B>
KILN_INLINE constexpr auto index_max(A a, B b) {
  return a > b ? a : b;
}

template <typename A, typename B>
KILN_INLINE constexpr auto index_min(A a, B b) {
  return a < b ? a : b;
}

// An index read from memory, brought inside an axis so that nothing outside is touched.
template <typename T, typename N>
KILN_INLINE constexpr int64_t clamp_index(T index, N size) {
  int64_t last = int64_t(size) - 1, value = int64_t(index);
  return value < 0 ? 0 : value > last ? last : value;
}

// The same where a negative index counts from the end.
template <typename T, typename N>
KILN_INLINE constexpr int64_t wrap_index(T index, N size) {
  int64_t value = int64_t(index);
  return clamp_index(value < 0 ? value + int64_t(size) : value, size);
}

}  // namespace kiln
