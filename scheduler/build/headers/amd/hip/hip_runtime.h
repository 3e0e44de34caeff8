// The part of HIP that Kiln's kernels use, for AMD GPUs, written against the compiler alone.
//
// It needs neither ROCm's headers nor its device libraries (-nogpuinc -nogpulib). The build passes
// the target's macros (__gfx942__, __GFX9__ ...) and KILN_WAVE_SIZE to the host pass as well, so
// that constants derived from them agree between the launch and the kernel.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <kiln/hip_types.h>

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
// Without debug lines of their own: what they become belongs to the kernel line that calls them.
#define __HIP_INLINE __device__ inline __attribute__((always_inline, nodebug))

// The second number is in waves per execution unit, as the compiler counts it.
#define __launch_bounds__(...) __KILN_BOUNDS(__VA_ARGS__, __KILN_BOUNDS2, __KILN_BOUNDS1)(__VA_ARGS__)
#define __KILN_BOUNDS(a, b, name, ...) name
#define __KILN_BOUNDS1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __KILN_BOUNDS2(threads, waves) \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

// ---- types -------------------------------------------------------------------------------------

struct uint3 {
  uint32_t x, y, z;
};

struct dim3 {
  uint32_t x, y, z;
  __host__ __device__ constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

// ---- the runtime's functions (libamdhip64, found when the library is loaded) ----------------------

extern "C" {
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipMemsetAsync(void* dst, int value, size_t bytes, hipStream_t stream);
hipError_t hipFuncSetAttribute(const void* function, hipFuncAttribute attribute, int value);
hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                           size_t lds_bytes, hipStream_t stream);
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds_bytes,
                                     hipStream_t* stream);
}

#define hipLaunchKernelGGL(kernel, grid, block, lds_bytes, stream, ...) \
  (kernel)<<<(grid), (block), (lds_bytes), (stream)>>>(__VA_ARGS__)

#if !defined(__HIP_DEVICE_COMPILE__)
// What a C runtime's start files give a shared library. The library is linked without them, so
// that nothing but libamdhip64 and the C library itself is needed to load it.
extern "C" {
__attribute__((weak, visibility("hidden"))) void* __dso_handle = &__dso_handle;
int __cxa_atexit(void (*function)(void*), void* argument, void* library);
void __cxa_finalize(void* library);
__attribute__((weak, visibility("hidden"))) int atexit(void (*function)(void)) {
  return __cxa_atexit(reinterpret_cast<void (*)(void*)>(function), nullptr, &__dso_handle);
}
}
// Unregisters the code object when the library is closed, rather than at exit from unmapped memory.
__attribute__((destructor)) static void kiln_unload() { __cxa_finalize(&__dso_handle); }
#endif

// ---- indices -------------------------------------------------------------------------------------

#define __KILN_INDEX(name, X, Y, Z)                                       \
  struct __kiln_##name##_t {                                              \
    __declspec(property(get = __x)) uint32_t x;                           \
    __declspec(property(get = __y)) uint32_t y;                           \
    __declspec(property(get = __z)) uint32_t z;                           \
    __HIP_INLINE uint32_t __x() const { return X; }                       \
    __HIP_INLINE uint32_t __y() const { return Y; }                       \
    __HIP_INLINE uint32_t __z() const { return Z; }                       \
    __HIP_INLINE operator dim3() const { return dim3(X, Y, Z); }          \
  };                                                                      \
  extern const __device__ __attribute__((weak)) __kiln_##name##_t name;

// Blocks in the grid are the first three words of the hidden arguments (code object version 5 on).
__HIP_INLINE uint32_t __kiln_grid_blocks(int axis) {
  typedef const __attribute__((address_space(4))) uint32_t* words;
  return ((words)__builtin_amdgcn_implicitarg_ptr())[axis];
}

__KILN_INDEX(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
             __builtin_amdgcn_workitem_id_z())
__KILN_INDEX(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
             __builtin_amdgcn_workgroup_id_z())
__KILN_INDEX(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
             __builtin_amdgcn_workgroup_size_z())
__KILN_INDEX(gridDim, __kiln_grid_blocks(0), __kiln_grid_blocks(1), __kiln_grid_blocks(2))
#undef __KILN_INDEX

#ifndef KILN_WAVE_SIZE
#if defined(__GFX9__)
#define KILN_WAVE_SIZE 64
#else
#define KILN_WAVE_SIZE 32
#endif
#endif
static constexpr int warpSize = KILN_WAVE_SIZE;

__HIP_INLINE uint32_t __lane_id() {
#if KILN_WAVE_SIZE == 64
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
#else
  return __builtin_amdgcn_mbcnt_lo(~0u, 0u);
#endif
}

// ---- order in memory -------------------------------------------------------------------------------

__HIP_INLINE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__HIP_INLINE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__HIP_INLINE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__HIP_INLINE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

// ---- across the lanes of a wave ----------------------------------------------------------------------

// Any value of a whole number of 16 bits travels as words through ds_bpermute.
template <typename T>
__HIP_INLINE T __kiln_from_lane(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  int in[words] = {};
  __builtin_memcpy(in, &value, sizeof(T));
  int out[words];
#pragma unroll
  for (int i = 0; i < words; ++i) out[i] = __builtin_amdgcn_ds_bpermute(lane << 2, in[i]);
  T result;
  __builtin_memcpy(&result, out, sizeof(T));
  return result;
}

// As in HIP: a lane outside its segment of `width` lanes gives the caller's own value.
template <typename T>
__HIP_INLINE T __shfl(T value, int lane, int width = warpSize) {
  int self = (int)__lane_id();
  return __kiln_from_lane(value, (lane & (width - 1)) + (self & ~(width - 1)));
}
template <typename T>
__HIP_INLINE T __shfl_xor(T value, int mask, int width = warpSize) {
  int self = (int)__lane_id();
  int lane = self ^ mask;
  return __kiln_from_lane(value, lane >= ((self + width) & ~(width - 1)) ? self : lane);
}
template <typename T>
__HIP_INLINE T __shfl_down(T value, unsigned delta, int width = warpSize) {
  int self = (int)__lane_id();
  int lane = self + (int)delta;
  return __kiln_from_lane(value, (self & (width - 1)) + (int)delta >= width ? self : lane);
}
template <typename T>
__HIP_INLINE T __shfl_up(T value, unsigned delta, int width = warpSize) {
  int self = (int)__lane_id();
  int lane = self - (int)delta;
  return __kiln_from_lane(value, lane < (self & ~(width - 1)) ? self : lane);
}

__HIP_INLINE uint64_t __ballot(int predicate) {
#if KILN_WAVE_SIZE == 64
  return __builtin_amdgcn_ballot_w64(predicate != 0);
#else
  return __builtin_amdgcn_ballot_w32(predicate != 0);
#endif
}
__HIP_INLINE int __any(int predicate) { return __ballot(predicate) != 0; }
__HIP_INLINE int __all(int predicate) { return __ballot(predicate == 0) == 0; }
__HIP_INLINE int __popc(uint32_t bits) { return __builtin_popcount(bits); }
__HIP_INLINE int __popcll(uint64_t bits) { return __builtin_popcountll(bits); }
__HIP_INLINE int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((uint32_t)bits); }

// ---- atomics: relaxed, seen by the whole device --------------------------------------------------------

template <typename T>
__HIP_INLINE T atomicAdd(T* at, T value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
__HIP_INLINE T atomicMax(T* at, T value) {
  return __hip_atomic_fetch_max(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
__HIP_INLINE T atomicMin(T* at, T value) {
  return __hip_atomic_fetch_min(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
__HIP_INLINE T atomicExch(T* at, T value) {
  return __hip_atomic_exchange(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
__HIP_INLINE T atomicCAS(T* at, T expected, T value) {
  __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
