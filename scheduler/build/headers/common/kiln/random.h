// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#pragma once

#include <kiln/types.h>

namespace kiln {

namespace detail {

struct PhiloxWords {
  uint32_t x[4];
};

// The words of a counter of 128 bits, the lower half first, and a key of 64.
KILN_INLINE PhiloxWords philox(uint64_t counter, uint64_t upper, uint64_t key) {
  uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
  uint32_t x2 = static_cast<uint32_t>(upper), x3 = static_cast<uint32_t>(upper >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x0, p1 = uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x1 = static_cast<uint32_t>(p1), x3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{x0, x1, x2, x3}};
}

}  // namespace detail

template <typename T>
KILN_INLINE T philox_word0(T counter, T key) {
  return static_cast<T>(detail::philox(static_cast<uint64_t>(counter), 0, static_cast<uint64_t>(key)).x[0]);
}

template <typename T>
KILN_INLINE T philox_word1(T counter, T key) {
  return static_cast<T>(detail::philox(static_cast<uint64_t>(counter), 0, static_cast<uint64_t>(key)).x[1]);
}

// Whichever of the four words; of the number of the word its lowest two bits count.
template <typename T>
KILN_INLINE T philox_word(T counter, T upper, T key, T word) {
  const detail::PhiloxWords made = detail::philox(
      static_cast<uint64_t>(counter), static_cast<uint64_t>(upper), static_cast<uint64_t>(key));
  const uint32_t low = (word & 1) ? made.x[1] : made.x[0];
  const uint32_t high = (word & 1) ? made.x[3] : made.x[2];
  return static_cast<T>((word & 2) ? high : low);
}

}  // namespace kiln
