// Reads of a product's operands: an address in two parts, its row's and its step's along k, behind a
// mask.
#pragma once

#include <hip/hip_runtime.h>
#include <kiln/types.h>

namespace kiln::operand {

// Offsets from here on are outside: what they read is 0.
constexpr uint32_t kOutside = 0x80000000u;

#if defined(__AMDGCN__)
// What lies beyond 2 GiB of `base` is not read: the hardware gives zeros, without a branch.
template <int N, typename T>
__device__ __forceinline__ Vec<T, N> read_buffer(const T* base, uint32_t lane, uint32_t all) {
#if defined(__GFX9__)
  constexpr int kFlags = 0x00020000;  // raw, 32-bit data
#elif defined(__GFX10__)
  constexpr int kFlags = 0x31014000;
#else
  constexpr int kFlags = 0x31004000;
#endif
  const auto buffer = __builtin_amdgcn_make_buffer_rsrc(const_cast<T*>(base), 0, int(kOutside), kFlags);
  constexpr int kBytes = N * sizeof(T);
  if constexpr (kBytes == 16) {
    return __builtin_bit_cast(Vec<T, N>, __builtin_amdgcn_raw_buffer_load_b128(buffer, lane, all, 0));
  } else if constexpr (kBytes == 8) {
    return __builtin_bit_cast(Vec<T, N>, __builtin_amdgcn_raw_buffer_load_b64(buffer, lane, all, 0));
  } else if constexpr (kBytes == 4) {
    return __builtin_bit_cast(Vec<T, N>, __builtin_amdgcn_raw_buffer_load_b32(buffer, lane, all, 0));
  } else if constexpr (kBytes == 2) {
    return __builtin_bit_cast(Vec<T, N>, __builtin_amdgcn_raw_buffer_load_b16(buffer, lane, all, 0));
  } else {
    return __builtin_bit_cast(Vec<T, N>, __builtin_amdgcn_raw_buffer_load_b8(buffer, lane, all, 0));
  }
}
#endif

// N elements at `row + step` bytes after `base`, both below 2 GiB; zeros where not `inside`.
// `Uniform`: the wave's lanes agree on `step`.
template <int N, bool Uniform, typename T>
__device__ __forceinline__ Vec<T, N> read(const T* base, uint32_t row, uint32_t step, bool inside) {
#if defined(__AMDGCN__)
  if constexpr (Uniform) return read_buffer<N>(base, inside ? row : kOutside, step);
  return read_buffer<N>(base, inside ? row + step : kOutside, 0);
#else
  if (!inside) return 0;
  return *reinterpret_cast<const Vec<T, N>*>(reinterpret_cast<const char*>(base) + (row + step));
#endif
}

// The same at any distance, in elements.
template <int N, bool Uniform, typename T>
__device__ __forceinline__ Vec<T, N> read(const T* base, int64_t row, int64_t step, bool inside) {
  if (!inside) return 0;
  return *reinterpret_cast<const Vec<T, N>*>(base + row + step);
}

// Where they lie.
template <typename T>
__device__ __forceinline__ const T* at(const T* base, uint32_t row, uint32_t step) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(base) + (row + step));
}
template <typename T>
__device__ __forceinline__ const T* at(const T* base, int64_t row, int64_t step) {
  return base + row + step;
}

}  // namespace kiln::operand
