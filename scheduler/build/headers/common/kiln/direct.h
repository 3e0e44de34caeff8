// Loads of 16 bytes a lane that write LDS themselves, without going through registers (CDNA 4). What
// the lanes of a wave load lands one lane's behind the other's, and what a wave asked for arrives in
// that order.
#pragma once

#include <kiln/mma.h>

namespace kiln::direct {

constexpr int kBytes = 16;

// From `row + step` bytes after `base` on, below 2 GiB; to `shared` and on, of the wave's first lane.
// The wave's lanes agree on `step` and `shared`.
template <typename T>
__device__ __forceinline__ void load(const T* base, uint32_t row, uint32_t step, T* shared) {
#if defined(__AMDGCN__)
  using Words = uint32_t __attribute__((ext_vector_type(4)));
  const uint64_t from = reinterpret_cast<uint64_t>(base);
  const Words buffer = {uint32_t(from), uint32_t(from >> 32), 0x80000000u, 0x00020000u};
  const uint32_t to = uint32_t(reinterpret_cast<uintptr_t>((__attribute__((address_space(3))) T*)shared));
  // By hand: of its own builtin the compiler waits for all loads before anything is read from LDS.
  asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dwordx4 %1, %2, %3 offen lds" ::"s"(to),
               "v"(row), "s"(buffer), "s"(step)
               : "memory", "m0");
#else
  const char* const from = reinterpret_cast<const char*>(base) + (row + step);
  char* const to = reinterpret_cast<char*>(shared) + int(threadIdx.x) % KILN_WAVE_SIZE * kBytes;
  __builtin_memcpy(to, from, kBytes);
#endif
}

// What the block's waves asked for, all but the N latest loads of each, is there for all of them, and
// none reads any more what it read before. The compiler knows of no load: it waits for none. As many
// as the counter of six bits can say is: no load is waited for.
template <int N>
__device__ __forceinline__ void wait_for_loads() {
#if defined(__AMDGCN__)
  static_assert(N < 64, "a counter of six bits");
  if constexpr (N < 63)
    asm volatile("s_waitcnt vmcnt(%0) lgkmcnt(0)" ::"n"(N) : "memory");
  else
    asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
  __builtin_amdgcn_s_barrier();
  asm volatile("" ::: "memory");
#else
  __syncthreads();
#endif
}

// Whether the wave goes before the SIMD's others.
template <int Priority>
__device__ __forceinline__ void set_priority() {
#if defined(__AMDGCN__)
  __builtin_amdgcn_s_setprio(Priority);
#endif
}

}  // namespace kiln::direct
