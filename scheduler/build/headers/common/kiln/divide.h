// Division by a number that is the same for all threads: a multiplication, as the host has given
// the kernel its multiplier, 2^62 / divisor + 1.
#pragma once

#include <kiln/index.h>

namespace kiln {

// The multiplier is 2^62 / divisor and at most 1 more, so the product of it and a dividend below
// 2^31 is at most 2^31 / 2^62 too large as a quotient: less than 1 / divisor, and of no consequence.
KILN_INLINE constexpr uint32_t multiplied(uint32_t dividend, int64_t multiplier) {
  const uint64_t low = (uint64_t(dividend) * uint32_t(multiplier)) >> 32;
  return uint32_t((uint64_t(dividend) * uint32_t(multiplier >> 32) + low) >> 30);
}

// Both are not negative. Indices of 64 bits are divided as they are.
template <typename A, typename B>
KILN_INLINE constexpr auto quotient(A dividend, B divisor, int64_t multiplier) {
  if constexpr (sizeof(dividend / divisor) > 4) return dividend / divisor;
  else return int32_t(multiplied(uint32_t(dividend), multiplier));
}

template <typename A, typename B>
KILN_INLINE constexpr auto remainder(A dividend, B divisor, int64_t multiplier) {
  return dividend - quotient(dividend, divisor, multiplier) * divisor;
}

}  // namespace kiln
