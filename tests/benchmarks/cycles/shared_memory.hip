// Reads of shared memory with known bank conflicts: lane i reads WIDTH words at i * STRIDE * WIDTH.
// The same text is modelled for AMD's GPUs and measured on an H200.
#include <hip/hip_runtime.h>
#include <kiln/types.h>

template <int STRIDE, int WIDTH>
__device__ void reads(float* out, int rounds) {
  typedef float Vector __attribute__((ext_vector_type(WIDTH)));
  constexpr int kVectors = 8192 / WIDTH;
  __shared__ Vector memory[kVectors];
  for (int i = threadIdx.x; i < kVectors; i += 256) memory[i] = static_cast<float>(i);
  __syncthreads();
  Vector sum = 0;
  int at = (threadIdx.x * STRIDE) % kVectors;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < 8; ++step) sum += memory[(at + step * 32) % kVectors];
    at = (at + 256) % kVectors;
  }
  reinterpret_cast<Vector*>(out)[blockIdx.x * 256 + threadIdx.x] = sum;
}

#define READS(width, stride)                                                                    \
  extern "C" __global__ void __launch_bounds__(256)                                             \
      shared_w##width##_s##stride(float* out, int rounds) { reads<stride, width>(out, rounds); }

READS(1, 1)
READS(1, 2)
READS(1, 4)
READS(1, 8)
READS(1, 16)
READS(1, 32)
READS(1, 33)
READS(2, 1)
READS(2, 2)
READS(2, 4)
READS(2, 8)
READS(4, 1)
READS(4, 2)
READS(4, 4)
READS(4, 8)

extern "C" PT_EXPORT int none() { return 0; }
