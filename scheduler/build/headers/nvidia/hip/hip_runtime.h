// The part of HIP that Kiln's kernels use, for NVIDIA GPUs, written against the compiler alone.
//
// It needs no CUDA toolkit: device code becomes PTX, and the host's part calls the driver
// (libcuda), which assembles PTX where no cubin is there. The build passes KILN_SM (90 for sm_90)
// and KILN_WAVE_SIZE to both passes.
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

#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

// Static shared memory ends at 48 KiB; what a launch asks for ends where the SM's does. The comment
// tells how much it is, for whoever reads the PTX.
extern __shared__ __attribute__((aligned(16))) unsigned char kiln_shared[];
#define KILN_SHARED(type, name, count)                                       \
  asm volatile("// kiln_shared_bytes %0" : : "n"(sizeof(type) * (count)));   \
  type* const name = reinterpret_cast<type*>(kiln_shared)
#define KILN_SHARED_BYTES(type, count) (sizeof(type) * (count))

// ---- types -------------------------------------------------------------------------------------

struct uint3 {
  uint32_t x, y, z;
};

struct dim3 {
  uint32_t x, y, z;
  __host__ __device__ constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

// ---- the runtime's functions: nvidia/launch.h has them for the host's part --------------------------

extern "C" {
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipMemsetAsync(void* dst, int value, size_t bytes, hipStream_t stream);
// The sources are compiled as CUDA: launches go through these.
hipError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                            size_t lds_bytes, hipStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t lds_bytes = 0,
                                     hipStream_t stream = nullptr);
hipError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* lds_bytes,
                                      hipStream_t* stream);
// The thread's next launch may begin before the one before it has ended (nvidia/launches.h).
void kiln_begin_early(void);
}

#define hipLaunchKernelGGL(kernel, grid, block, lds_bytes, stream, ...) \
  (kernel)<<<(grid), (block), (lds_bytes), (stream)>>>(__VA_ARGS__)

// ---- indices -------------------------------------------------------------------------------------

#define __KILN_INDEX(name, register)                                                    \
  struct __kiln_##name##_t {                                                            \
    __declspec(property(get = __x)) uint32_t x;                                         \
    __declspec(property(get = __y)) uint32_t y;                                         \
    __declspec(property(get = __z)) uint32_t z;                                         \
    __HIP_INLINE uint32_t __x() const { return __nvvm_read_ptx_sreg_##register##_x(); } \
    __HIP_INLINE uint32_t __y() const { return __nvvm_read_ptx_sreg_##register##_y(); } \
    __HIP_INLINE uint32_t __z() const { return __nvvm_read_ptx_sreg_##register##_z(); } \
    __HIP_INLINE operator dim3() const { return dim3(__x(), __y(), __z()); }            \
  };                                                                                    \
  extern const __device__ __attribute__((weak)) __kiln_##name##_t name;

__KILN_INDEX(threadIdx, tid)
__KILN_INDEX(blockIdx, ctaid)
__KILN_INDEX(blockDim, ntid)
__KILN_INDEX(gridDim, nctaid)
#undef __KILN_INDEX

static constexpr int warpSize = KILN_WAVE_SIZE;

__HIP_INLINE uint32_t __lane_id() { return __nvvm_read_ptx_sreg_laneid(); }

// ---- order in memory -------------------------------------------------------------------------------

// __syncthreads is the compiler's own.
__HIP_INLINE void __threadfence() { __nvvm_membar_gl(); }
__HIP_INLINE void __threadfence_block() { __nvvm_membar_cta(); }
__HIP_INLINE void __threadfence_system() { __nvvm_membar_sys(); }

// ---- across the lanes of a warp ----------------------------------------------------------------------

// Any value travels as words; every lane of the warp takes part, as HIP's lockstep has it.
template <typename T>
__HIP_INLINE T __kiln_from_lane(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  int in[words] = {};
  __builtin_memcpy(in, &value, sizeof(T));
  int out[words];
#pragma unroll
  for (int i = 0; i < words; ++i) out[i] = __nvvm_shfl_sync_idx_i32(~0u, in[i], lane, 31);
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
  return __nvvm_vote_ballot_sync(~0u, predicate != 0);
}
__HIP_INLINE int __any(int predicate) { return __ballot(predicate) != 0; }
__HIP_INLINE int __all(int predicate) { return __ballot(predicate == 0) == 0; }
__HIP_INLINE int __popc(uint32_t bits) { return __builtin_popcount(bits); }
__HIP_INLINE int __popcll(uint64_t bits) { return __builtin_popcountll(bits); }
__HIP_INLINE int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((uint32_t)bits); }

// ---- atomics: relaxed, seen by the whole device --------------------------------------------------------

template <typename T>
__HIP_INLINE T atomicAdd(T* at, T value) {
  return __scoped_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <typename T>
__HIP_INLINE T atomicMax(T* at, T value) {
  return __scoped_atomic_fetch_max(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <typename T>
__HIP_INLINE T atomicMin(T* at, T value) {
  return __scoped_atomic_fetch_min(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <typename T>
__HIP_INLINE T atomicExch(T* at, T value) {
  return __scoped_atomic_exchange_n(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <typename T>
__HIP_INLINE T atomicCAS(T* at, T expected, T value) {
  __scoped_atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  return expected;
}

#if !defined(__CUDA_ARCH__)
#include <nvidia/launch.h>
#endif
