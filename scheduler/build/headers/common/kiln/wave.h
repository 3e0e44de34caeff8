// Reductions over the lanes of a wave and over the threads of a block.
//
// Each takes an operation on two values, as a struct with `operator()` and the identity `zero`.
// The order of the combination is fixed, so that results do not change from run to run.
#pragma once

#include <hip/hip_runtime.h>
#include <kiln/arithmetic.h>
#include <kiln/types.h>

#define KILN_DEVICE __device__ inline __attribute__((always_inline, nodebug))

namespace kiln {

template <typename T>
struct Sum {
  static constexpr T zero = T(0);
  KILN_DEVICE T operator()(T a, T b) const { return plus(a, b); }
};

template <typename T>
struct Product {
  static constexpr T zero = T(1);
  KILN_DEVICE T operator()(T a, T b) const { return times(a, b); }
};

// The greatest and least values of a type, for a reduction to begin with.
template <typename T>
constexpr T lowest() {
  if constexpr (__is_same(T, float)) return -__builtin_inff();
  else if constexpr (__is_same(T, double)) return -__builtin_inf();
  else if constexpr (T(-1) > T(0)) return T(0);
  else return T(T(1) << (sizeof(T) * 8 - 1));
}
template <typename T>
constexpr T highest() {
  if constexpr (__is_same(T, float)) return __builtin_inff();
  else if constexpr (__is_same(T, double)) return __builtin_inf();
  else return T(~lowest<T>());
}

// As torch's amax and amin: a NaN anywhere gives NaN. GPUs have instructions for that of floats,
// which older compilers do not know.
template <typename T>
struct Max {
  static constexpr T zero = lowest<T>();
  KILN_DEVICE T operator()(T a, T b) const {
#if __has_builtin(__builtin_elementwise_maximum)
    if constexpr (__is_same(T, float)) return __builtin_elementwise_maximum(a, b);
#endif
    return a != a || a > b ? a : b;
  }
};
template <typename T>
struct Min {
  static constexpr T zero = highest<T>();
  KILN_DEVICE T operator()(T a, T b) const {
#if __has_builtin(__builtin_elementwise_minimum)
    if constexpr (__is_same(T, float)) return __builtin_elementwise_minimum(a, b);
#endif
    return a != a || a < b ? a : b;
  }
};

// A value of the neighbouring `Span` lanes, where those of each aligned group of `Span` lanes hold the
// same one: which lane of the group it comes from does not matter, so AMD's moves within a row of 16
// lanes (DPP) do, which an addition takes in itself; anything else goes through LDS.
template <int Span, typename T>
KILN_DEVICE T of_neighbours(T value) {
#if defined(__AMDGCN__)
  if constexpr (Span < 16 && sizeof(T) % 4 == 0) {
    // Within four lanes 1 0 3 2 and 2 3 0 1; half a row mirrored, and a row.
    constexpr int control = Span == 1 ? 0xb1 : Span == 2 ? 0x4e : Span == 4 ? 0x141 : 0x140;
    int words[sizeof(T) / 4];
    __builtin_memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int& word : words) word = __builtin_amdgcn_update_dpp(0, word, control, 0xf, 0xf, true);
    T result;
    __builtin_memcpy(&result, words, sizeof(T));
    return result;
  }
#endif
  return __shfl_xor(value, Span);
}

#if defined(__AMDGCN__)
// What a lane of the wave holds, for all of them: from a register to a scalar one.
template <typename T>
KILN_DEVICE T of_lane(T value, int lane) {
  int words[sizeof(T) / 4];
  __builtin_memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int& word : words) word = __builtin_amdgcn_readlane(word, lane);
  T result;
  __builtin_memcpy(&result, words, sizeof(T));
  return result;
}
#endif

// Every lane of a segment of `Width` lanes (a power of two) gets the combination of all of them.
template <int Width = wave_size, int Span = 1, typename T, typename Op>
KILN_DEVICE T wave_reduce(T value, Op op) {
  static_assert(Width <= wave_size && (Width & (Width - 1)) == 0, "a power of two within a wave");
#if defined(__AMDGCN__)
  // Rows of 16 lanes hold one value each: those of a whole wave are taken from there.
  if constexpr (Span == 16 && Width == wave_size && sizeof(T) % 4 == 0) {
    const T half = op(of_lane(value, 0), of_lane(value, 16));
    if constexpr (Width == 32) return half;
    else return op(half, op(of_lane(value, 32), of_lane(value, 48)));
  } else
#endif
  if constexpr (Span < Width) return wave_reduce<Width, 2 * Span>(op(value, of_neighbours<Span>(value)), op);
  else return value;
}

// Every thread of a block of `Threads` (a multiple of the wave size, in x) gets the combination of
// all. `scratch` is LDS for Threads / wave_size values; it may be used again after the next barrier.
template <int Threads, typename T, typename Op>
KILN_DEVICE T block_reduce(T value, Op op, T* scratch) {
  constexpr int waves = Threads / wave_size;
  static_assert(Threads % wave_size == 0, "whole waves");
  value = wave_reduce(value, op);
  if constexpr (waves > 1) {
    const int thread = threadIdx.x;
    if (thread % wave_size == 0) scratch[thread / wave_size] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int i = 1; i < waves; ++i) value = op(value, scratch[i]);
  }
  return value;
}

}  // namespace kiln
