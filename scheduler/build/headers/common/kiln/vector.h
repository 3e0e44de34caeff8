// Several neighbouring elements in one access to memory.
#pragma once

#include <kiln/types.h>

namespace kiln {

// An array rather than a vector type, so that bool and every other element type has one.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T data[N];
  KILN_INLINE T& operator[](int i) { return data[i]; }
  KILN_INLINE const T& operator[](int i) const { return data[i]; }
};

// `from` is a multiple of the pack's size. The pointer's type says so: what is only assumed of an
// address may be forgotten before the copy becomes instructions, which are then of single bytes.
template <int N, typename T>
KILN_INLINE Pack<T, N> load_pack(const T* from) {
  Pack<T, N> pack;
  __builtin_memcpy(&pack, reinterpret_cast<const Pack<T, N>*>(from), sizeof(pack));
  return pack;
}

// The same of what no other thread reads and nobody soon again: what caches hold for others stays.
template <int N, typename T>
KILN_INLINE Pack<T, N> load_pack_once(const T* from) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Pack<T, N>) == 16) {
    struct Words {
      uint32_t word[4];
    } words;
    asm("{\n\t.reg .b64 policy;\n\tcreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
        "ld.global.L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy;\n\t}"
        : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
        : "l"(from));
    return __builtin_bit_cast(Pack<T, N>, words);
  }
#endif
  return load_pack<N>(from);
}

template <int N, typename T>
KILN_INLINE void store_pack(T* to, const Pack<T, N>& pack) {
  __builtin_memcpy(reinterpret_cast<Pack<T, N>*>(to), &pack, sizeof(pack));
}

}  // namespace kiln
