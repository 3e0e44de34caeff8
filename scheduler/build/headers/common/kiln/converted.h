// Elements of 8 bits that a product reads several of at once, and what they become in registers.
#pragma once

#include <kiln/held.h>
#include <kiln/types.h>

namespace kiln::operand {

template <typename T>
__device__ __forceinline__ const Held<T>* held(const T* from) {
  return reinterpret_cast<const Held<T>*>(from);
}

// A float that the type has exactly: every element of 8 bits is one of bf16.
template <typename To>
__device__ __forceinline__ To exactly(float value) {
  if constexpr (__is_same(To, __bf16)) {
    return bit_cast<__bf16>(static_cast<uint16_t>(bit_cast<uint32_t>(value) >> 16));
  } else {
    return static_cast<To>(value);
  }
}

__device__ __forceinline__ float widened(int8_t value, int8_t) { return static_cast<float>(value); }
__device__ __forceinline__ float widened(uint8_t value, uint8_t) { return static_cast<float>(value); }
template <int Fraction, int Bias, Beyond Rule>
__device__ __forceinline__ float widened(uint8_t code, Float8<Fraction, Bias, Rule> type) {
  return to_float(decltype(type){code});
}
__device__ __forceinline__ float widened(uint8_t code, f8e8m0fnu) { return to_float(f8e8m0fnu{code}); }
// The upper half of one of f16.
__device__ __forceinline__ float widened(uint8_t code, f8e5m2) {
  return static_cast<float>(bit_cast<_Float16>(static_cast<uint16_t>(code << 8)));
}
// Sign, exponent and fraction in their places in a float, whose exponent has another bias: a product
// puts that right, for what is below the normal numbers too. NaN would be 480, beyond the largest
// (448): only that times `kMuch` is infinite, and infinity times 0 is NaN.
__device__ __forceinline__ float widened(uint8_t code, f8e4m3fn) {
  constexpr float kScale = 0x1p120f, kMuch = 0x1.1ap119f;
  const int32_t placed = static_cast<int32_t>(uint32_t(code) << 24) >> 4;
  const float number = bit_cast<float>(uint32_t(placed) & 0x87f00000u) * kScale;
  return __builtin_elementwise_fma(number * kMuch, 0.0f, number);
}

template <typename To, typename From, int N>
struct Conversion {
  static __device__ __forceinline__ Vec<To, N> of(Vec<Held<From>, N> codes) {
    Vec<To, N> made;
#pragma unroll
    for (int i = 0; i < N; ++i) made[i] = exactly<To>(widened(codes[i], From{}));
    return made;
  }
};

// To f16 in the same way, two at a time.
template <int N>
  requires(N % 4 == 0)
struct Conversion<_Float16, f8e4m3fn, N> {
  using Pair = Vec<_Float16, 2>;
  // Two of a word's bytes, each the upper one of a half.
  template <int First>
  static __device__ __forceinline__ uint32_t spread(uint32_t word) {
#if defined(__AMDGCN__)
    return __builtin_amdgcn_perm(0, word, First == 0 ? 0x010c000cu : 0x030c020cu);
#else
    return (word >> 8 * First & 0xffu) << 8 | (word >> (8 * First + 8) & 0xffu) << 24;
#endif
  }
  template <int First>
  static __device__ __forceinline__ Pair pair(uint32_t word) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint32_t made;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(made) : "h"(static_cast<uint16_t>(word >> 8 * First)));
    return bit_cast<Pair>(made);
#endif
    const Vec<int16_t, 2> placed = bit_cast<Vec<int16_t, 2>>(spread<First>(word)) >> 1;
    const Pair small = bit_cast<Pair>(bit_cast<uint32_t>(placed) & 0xbf80bf80u);
    const Pair number = small * Pair(_Float16(0x1p8f));
    const Pair much = small * Pair(_Float16(36000.0f));
    return __builtin_elementwise_fma(much, Pair(_Float16(0)), number);
  }
  static __device__ __forceinline__ Vec<_Float16, N> of(Vec<uint8_t, N> codes) {
    struct Words {
      uint32_t word[N / 4];
    };
    struct Pairs {
      Pair pair[N / 2];
    } made;
    const Words words = bit_cast<Words>(codes);
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      made.pair[2 * i] = pair<0>(words.word[i]);
      made.pair[2 * i + 1] = pair<2>(words.word[i]);
    }
    return bit_cast<Vec<_Float16, N>>(made);
  }
};

template <typename To, typename From, int N>
__device__ __forceinline__ Vec<To, N> converted(Vec<Held<From>, N> codes) {
  return Conversion<To, From, N>::of(codes);
}

}  // namespace kiln::operand
