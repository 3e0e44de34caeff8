// Copies of 2^26 floats in orders that use less and less of what a cache line brings, and in
// narrower and wider pieces. The same text is modelled for AMD's GPUs and measured on an H200.
#include <hip/hip_runtime.h>
#include <kiln/types.h>

constexpr unsigned kElements = 1u << 26;

// Element i of them is read at i * STRIDE, around and around: each element once.
template <int STRIDE>
__device__ void strided(const float* in, float* out) {
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  const unsigned at = i * STRIDE;
  out[i] = in[at % kElements + at / kElements];
}

template <typename T, int WIDTH>
__device__ void wide(const T* in, T* out) {
  typedef T Vector __attribute__((ext_vector_type(WIDTH)));
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  reinterpret_cast<Vector*>(out)[i] = reinterpret_cast<const Vector*>(in)[i];
}

#define STRIDED(stride)                                                                         \
  extern "C" __global__ void __launch_bounds__(256)                                             \
      global_s##stride(const float* in, float* out) { strided<stride>(in, out); }
#define WIDE(name, type, width)                                                                 \
  extern "C" __global__ void __launch_bounds__(256) name(const type* in, type* out) {           \
    wide<type, width>(in, out);                                                                 \
  }

STRIDED(1)
STRIDED(2)
STRIDED(4)
STRIDED(8)
WIDE(global_b16, short, 1)
WIDE(global_b128, float, 4)

extern "C" PT_EXPORT int none() { return 0; }
