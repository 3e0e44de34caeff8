// A value combined into an element of memory that other threads combine into at the same time.
#pragma once

#include <kiln/wave.h>

namespace kiln {

template <int Bytes>
struct WordOf {
  using Type = uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint64_t;
};

// By compare-and-swap, for what memory has no instruction for. An element that would stay as it is
// is left alone.
template <typename T, typename Op>
KILN_DEVICE void combine_by_exchange(T* at, T value, Op op) {
  using Word = typename WordOf<sizeof(T)>::Type;
  Word* word = reinterpret_cast<Word*>(at);
  Word seen = *const_cast<volatile Word*>(word);
  while (true) {
    const Word wanted = bit_cast<Word>(static_cast<T>(op(bit_cast<T>(seen), value)));
    if (wanted == seen) return;
    const Word before = atomicCAS(word, seen, wanted);
    if (before == seen) return;
    seen = before;
  }
}

template <typename T>
constexpr bool is_whole = T(1) / T(2) == T(0);

template <typename T>
KILN_DEVICE void combine(T* at, T value, Sum<T>) {
  atomicAdd(at, value);
}
template <typename T>
KILN_DEVICE void combine(T* at, T value, Product<T> op) {
  combine_by_exchange(at, value, op);
}
// Of floats a NaN wins, which the instructions have otherwise.
template <typename T>
KILN_DEVICE void combine(T* at, T value, Max<T> op) {
  if constexpr (is_whole<T>) {
    atomicMax(at, value);
  } else {
    combine_by_exchange(at, value, op);
  }
}
template <typename T>
KILN_DEVICE void combine(T* at, T value, Min<T> op) {
  if constexpr (is_whole<T>) {
    atomicMin(at, value);
  } else {
    combine_by_exchange(at, value, op);
  }
}

}  // namespace kiln
