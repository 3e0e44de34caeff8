// HIP's words and types for the host: the same kernel source compiles without change.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <kiln/hip_types.h>

#define __host__
#define __device__
#define __global__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
// A block runs to its end on one host thread, so that its LDS is that thread's own.
#define __shared__ thread_local
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(::kiln_cpu::dynamic_lds());

#ifndef KILN_WAVE_SIZE
#error "KILN_WAVE_SIZE is not defined: 32 or 64, the wavefront of the target that is emulated"
#endif
static constexpr int warpSize = KILN_WAVE_SIZE;

struct uint3 {
  uint32_t x, y, z;
};

struct dim3 {
  uint32_t x, y, z;
  constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
