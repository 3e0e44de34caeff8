"""Small HIP sources."""

from __future__ import annotations

ADD = """\
#include <hip/hip_runtime.h>
#include <kiln/types.h>
__global__ void __launch_bounds__(256) add(const float* x, float* y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
extern "C" PT_EXPORT int add_one(const float* x, float* y, int n, size_t* workspace_size,
                                 uint8_t* workspace, hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  if (n == 0) return 0;
  hipLaunchKernelGGL(add, dim3((n + 255) / 256), dim3(256), 0, stream, x, y, n);
  return hipGetLastError();
}
"""

# A product on matrix cores where there are any, with a loop around a loop and two barriers.
GEMM = """\
#include <hip/hip_runtime.h>
#include <kiln/types.h>
#include <kiln/mma.h>
template <typename T>
__global__ void __launch_bounds__(256) gemm(const T* a, const T* b, float* d, int m, int n, int k) {
  constexpr int K = kiln::mma::Tile<T, 32, 32>::kStep * 2, P = K + 8;
  __shared__ T sa[128 * P], sb[128 * P];
  const int lane = threadIdx.x % kiln::wave_size, wave = threadIdx.x / kiln::wave_size;
  kiln::mma::Tile<T, 32, 32> tile(lane);
  for (int k0 = 0; k0 < k; k0 += K) {
    for (int i = threadIdx.x; i < 128 * K; i += 256) {
      int r = i / K, c = i % K, row = blockIdx.y * 128 + r, column = blockIdx.x * 128 + r;
      sa[r * P + c] = row < m && k0 + c < k ? a[row * k + k0 + c] : T(0);
      sb[r * P + c] = column < n && k0 + c < k ? b[column * k + k0 + c] : T(0);
    }
    __syncthreads();
    for (int kk = 0; kk < K; kk += tile.kStep) tile.multiply(sa + wave * 16 * P + kk, sb + kk, P);
    __syncthreads();
  }
  for (int i = 0; i < tile.kRows; ++i)
    for (int j = 0; j < tile.kColumns; ++j) d[tile.row(i) * n + tile.column(j)] = tile.at(i, j);
}
extern "C" PT_EXPORT int product(const _Float16* a, const _Float16* b, float* d, int m, int n,
                                 int k, size_t* workspace_size, uint8_t* workspace,
                                 hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(gemm<_Float16>, dim3((n + 127) / 128, (m + 127) / 128), dim3(256), 0, stream,
                     a, b, d, m, n, k);
  return 0;
}
"""
