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

template <int N, typename T>
KILN_INLINE void store_pack(T* to, const Pack<T, N>& pack) {
  __builtin_memcpy(reinterpret_cast<Pack<T, N>*>(to), &pack, sizeof(pack));
}

}  // namespace kiln
