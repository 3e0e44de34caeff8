// What every generated source uses: exported functions, short vectors, narrow floats, complex numbers.
#pragma once

#include <hip/hip_runtime.h>
#include <stddef.h>
#include <stdint.h>

#define PT_EXPORT __attribute__((visibility("default")))

// Without debug lines of their own: what these become belongs to the kernel line that calls them.
#ifndef KILN_INLINE
#define KILN_INLINE __host__ __device__ inline __attribute__((always_inline, nodebug))
#endif

// A block's shared memory: `count` elements at a multiple of 16 bytes, once a kernel, and the bytes
// of it that a launch must ask for. A target that hands out more at launches has its own.
#ifndef KILN_SHARED
#define KILN_SHARED(type, name, count) __shared__ __attribute__((aligned(16))) type name[count]
#define KILN_SHARED_BYTES(type, count) 0
#endif

namespace kiln {

// What an exported function returns besides 0 and the runtime's own errors.
constexpr int kNullPointer = 1;  // hipErrorInvalidValue: a buffer that is not empty is null

// Lanes of a wave: 64 on gfx9, 32 on RDNA. The build gives it to the host pass as well.
constexpr int wave_size = KILN_WAVE_SIZE;

template <typename T, int N>
using Vec = T __attribute__((ext_vector_type(N)));

template <typename To, typename From>
KILN_INLINE constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

// ---- float <-> narrower floats, to nearest even, NaN stays NaN ----------------------------------

KILN_INLINE float to_float(float value) { return value; }
KILN_INLINE float to_float(_Float16 value) { return static_cast<float>(value); }
KILN_INLINE float to_float(__bf16 value) {
  return bit_cast<float>(uint32_t{bit_cast<uint16_t>(value)} << 16);
}

// The bits are rounded by hand, since not every host has an instruction for it. Adding half of the
// last place carries into the exponent just as rounding up does; ties go to the even neighbour.
KILN_INLINE __bf16 to_bf16(float value) {
#if (defined(__gfx950__) && defined(__AMDGCN__)) || defined(__NVPTX__)
  return static_cast<__bf16>(value);
#else
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return bit_cast<__bf16>(static_cast<uint16_t>(value != value ? quiet : rounded));
#endif
}

}  // namespace kiln

#include <kiln/complex.h>
#include <kiln/float8.h>

namespace kiln {

template <typename T>
KILN_INLINE T from_float(float value) {
  if constexpr (__is_same(T, __bf16)) {
    return to_bf16(value);
  } else if constexpr (__is_class(T)) {  // a float of 8 bits
    return detail::to_float8(value, T{});
  } else {
    return static_cast<T>(value);
  }
}

// ---- float -> unsigned integers of 32 and 64 bits ----------------------------------------------

// Towards zero; numbers below 0 wrap around, as torch's conversions on the CPU do. C++ leaves them
// undefined.
template <typename T, typename F>
KILN_INLINE T to_unsigned(F value) {
  if constexpr (sizeof(T) == 8) {
    if (value >= F(0x1p63)) return static_cast<T>(value);
  }
  return static_cast<T>(static_cast<int64_t>(value));
}

}  // namespace kiln
