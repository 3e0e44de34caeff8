// A wave's part of a matrix product, one interface over matrix-core instructions and plain FMA.
//
// Builtins used (CPU emulation defines host functions of these names, lane for lane):
//   gfx90a, gfx942, gfx950:  __builtin_amdgcn_mfma_f32_16x16x4f32
//   gfx90a, gfx942:          __builtin_amdgcn_mfma_f32_16x16x16f16
//                            __builtin_amdgcn_mfma_f32_16x16x16bf16_1k
//   gfx950:                  __builtin_amdgcn_mfma_f32_16x16x32_f16, ..._16x16x32_bf16
//   gfx11:                   __builtin_amdgcn_wmma_f32_16x16x16_f16_w32, ..._bf16_w32
//   gfx12:                   __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12, ..._bf16_w32_gfx12
//
// Layouts (AMD Matrix Instruction Calculator; CDNA3, RDNA3 and RDNA4 instruction set manuals). In
// every one of them lane L supplies row L % 16 of A and column L % 16 of B. Which k a lane supplies
// differs, but A and B always agree, and a sum over k may be taken in any order: each group of 16
// lanes therefore reads its own run of consecutive k, whatever the instruction calls them.
// Results, 16x16 in f32, column L % 16:
//   mfma   4 values, value i is row 4 * (L / 16) + i
//   gfx11  8 values, value i is row 2 * i + L / 16
//   gfx12  8 values, value i is row 8 * (L / 16) + i
#pragma once

#include <hip/hip_runtime.h>
#include <kiln/types.h>

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define KILN_MFMA 1
#elif defined(__GFX11__)
#define KILN_WMMA 11
#elif defined(__GFX12__)
#define KILN_WMMA 12
#endif

namespace kiln::mma {

template <typename T>
struct Accumulate {
  using type = float;
};
template <>
struct Accumulate<double> {
  using type = double;
};

// Reads N elements from an address that is a multiple of their size (N * sizeof(T) up to 16) bytes.
template <int N, typename T>
__device__ __forceinline__ Vec<T, N> read(const T* from) {
  return *reinterpret_cast<const Vec<T, N>*>(from);
}

// A number that all lanes of the wave agree on: the GPU then keeps it in a scalar register.
__device__ __forceinline__ int uniform(int value) {
#if defined(__AMDGCN__)
  return __builtin_amdgcn_readfirstlane(value);
#else
  return value;
#endif
}

// How many waves stand along m, so that each has a rectangle of whole 16x16 tiles that is as
// square as can be (less is read from LDS). 0: no way to share the block out.
constexpr int waves_along_m(int block_m, int block_n, int waves) {
  int best = 0, least = 1 << 30;
  for (int along_m = 1; along_m <= waves; ++along_m) {
    if (waves % along_m != 0) continue;
    const int along_n = waves / along_m;
    if (block_m % (along_m * 16) != 0 || block_n % (along_n * 16) != 0) continue;
    const int reads = block_m / along_m + block_n / along_n;
    if (reads < least) best = along_m, least = reads;
  }
  return best;
}

// ---- one 16x16 tile on matrix cores: Matrix<T>::kAvailable says whether this target has them -----

template <typename T>
struct Matrix {
  static constexpr bool kAvailable = false;
};

#if defined(KILN_MFMA)

template <>
struct Matrix<float> {
  static constexpr bool kAvailable = true;
  static constexpr int kStep = 16, kPerLane = 4, kValues = 4;
  using Input = Vec<float, 4>;
  using Output = Vec<float, 4>;
  static __device__ __forceinline__ int row(int lane, int i) { return lane / 16 * 4 + i; }
  static __device__ __forceinline__ Output multiply(Input a, Input b, Output c) {
    c = __builtin_amdgcn_mfma_f32_16x16x4f32(a[0], b[0], c, 0, 0, 0);
    c = __builtin_amdgcn_mfma_f32_16x16x4f32(a[1], b[1], c, 0, 0, 0);
    c = __builtin_amdgcn_mfma_f32_16x16x4f32(a[2], b[2], c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x4f32(a[3], b[3], c, 0, 0, 0);
  }
};

template <>
struct Matrix<_Float16> {
  static constexpr bool kAvailable = true;
  static constexpr int kStep = 32, kPerLane = 8, kValues = 4;
  using Input = Vec<_Float16, 8>;
  using Output = Vec<float, 4>;
  static __device__ __forceinline__ int row(int lane, int i) { return lane / 16 * 4 + i; }
  static __device__ __forceinline__ Output multiply(Input a, Input b, Output c) {
#if defined(__gfx950__)
    return __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, c, 0, 0, 0);
#else
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(a.lo, b.lo, c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x16f16(a.hi, b.hi, c, 0, 0, 0);
#endif
  }
};

template <>
struct Matrix<__bf16> {
  static constexpr bool kAvailable = true;
  static constexpr int kStep = 32, kPerLane = 8, kValues = 4;
  using Input = Vec<__bf16, 8>;
  using Output = Vec<float, 4>;
  static __device__ __forceinline__ int row(int lane, int i) { return lane / 16 * 4 + i; }
  static __device__ __forceinline__ Output multiply(Input a, Input b, Output c) {
#if defined(__gfx950__)
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, c, 0, 0, 0);
#else
    const auto x = __builtin_bit_cast(Vec<short, 8>, a), y = __builtin_bit_cast(Vec<short, 8>, b);
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x.lo, y.lo, c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x.hi, y.hi, c, 0, 0, 0);
#endif
  }
};

#elif defined(KILN_WMMA)

template <>
struct Matrix<_Float16> {
  static constexpr bool kAvailable = true;
  static constexpr int kStep = 16, kPerLane = KILN_WMMA == 11 ? 16 : 8, kValues = 8;
  using Input = Vec<_Float16, kPerLane>;
  using Output = Vec<float, 8>;
  static __device__ __forceinline__ int row(int lane, int i) {
    return KILN_WMMA == 11 ? 2 * i + lane / 16 : lane / 16 * 8 + i;
  }
  static __device__ __forceinline__ Output multiply(Input a, Input b, Output c) {
#if KILN_WMMA == 11
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
#else
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c);
#endif
  }
};

template <>
struct Matrix<__bf16> {
  static constexpr bool kAvailable = true;
  static constexpr int kStep = 16, kPerLane = KILN_WMMA == 11 ? 16 : 8, kValues = 8;
  using Input = Vec<__bf16, kPerLane>;
  using Output = Vec<float, 8>;
  static __device__ __forceinline__ int row(int lane, int i) {
    return KILN_WMMA == 11 ? 2 * i + lane / 16 : lane / 16 * 8 + i;
  }
  static __device__ __forceinline__ Output multiply(Input a, Input b, Output c) {
    const auto x = __builtin_bit_cast(Vec<short, kPerLane>, a);
    const auto y = __builtin_bit_cast(Vec<short, kPerLane>, b);
#if KILN_WMMA == 11
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x, y, c);
#else
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(x, y, c);
#endif
  }
};

#endif

// ---- a wave's rectangle: D[M][N] += sum over k of A[M][k] * B[N][k] --------------------------------
//
// A and B lie in LDS, k contiguous, rows `pitch` elements apart (a multiple of 16 bytes). The lane
// holds the elements (row(i), column(j)) for i < kRows, j < kColumns. kUnroll is how many steps the
// caller's loop should have in a row: in more of them, loads moved ahead take too many registers.

template <typename T, int M, int N, bool OnMatrixCores = Matrix<T>::kAvailable>
struct Tile {  // plain FMA: lanes in a grid of 8 columns, each with rows and columns strided
  using Acc = typename Accumulate<T>::type;
  static constexpr int kLaneColumns = 8, kLaneRows = KILN_WAVE_SIZE / kLaneColumns;
  static constexpr int kRows = M / kLaneRows, kColumns = N / kLaneColumns;
  static constexpr int kStep = 4, kUnroll = 1;
  Acc d[kRows][kColumns] = {};
  int lane;

  __device__ __forceinline__ explicit Tile(int lane_) : lane(lane_) {}
  __device__ __forceinline__ int row(int i) const { return lane / kLaneColumns + i * kLaneRows; }
  __device__ __forceinline__ int column(int j) const {
    return lane % kLaneColumns + j * kLaneColumns;
  }
  __device__ __forceinline__ Acc at(int i, int j) const { return d[i][j]; }

  __device__ __forceinline__ void multiply(const T* a, const T* b, int pitch) {
    Acc x[kRows][kStep], y[kColumns][kStep];
#pragma unroll
    for (int i = 0; i < kRows; ++i) fetch(x[i], a + row(i) * pitch);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) fetch(y[j], b + column(j) * pitch);
#pragma unroll
    for (int k = 0; k < kStep; ++k)
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) d[i][j] = __builtin_elementwise_fma(x[i][k], y[j][k], d[i][j]);
  }

 private:
  static __device__ __forceinline__ void fetch(Acc (&to)[kStep], const T* from) {
    constexpr int kWide = sizeof(T) == 8 ? 2 : kStep;
#pragma unroll
    for (int k = 0; k < kStep; k += kWide) {
      const auto part = read<kWide>(from + k);
#pragma unroll
      for (int i = 0; i < kWide; ++i) to[k + i] = static_cast<Acc>(part[i]);
    }
  }
};

template <typename T, int M, int N>
struct Tile<T, M, N, true> {
  using Core = Matrix<T>;
  using Acc = float;
  static constexpr int kTilesM = M / 16, kTilesN = N / 16;
  static constexpr int kRows = kTilesM * Core::kValues, kColumns = kTilesN;
  static constexpr int kStep = Core::kStep, kUnroll = Core::kPerLane < 16 ? 4 : 1;
  typename Core::Output d[kTilesM][kTilesN] = {};
  int lane;

  __device__ __forceinline__ explicit Tile(int lane_) : lane(lane_) {}
  __device__ __forceinline__ int row(int i) const {
    return i / Core::kValues * 16 + Core::row(lane, i % Core::kValues);
  }
  __device__ __forceinline__ int column(int j) const { return j * 16 + lane % 16; }
  __device__ __forceinline__ Acc at(int i, int j) const {
    return d[i / Core::kValues][j][i % Core::kValues];
  }

  __device__ __forceinline__ void multiply(const T* a, const T* b, int pitch) {
    typename Core::Input x[kTilesM], y[kTilesN];
    const int own = lane % 16 * pitch + lane / 16 * Core::kPerLane % kStep;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) x[i] = fetch(a + i * 16 * pitch + own);
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) y[j] = fetch(b + j * 16 * pitch + own);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) d[i][j] = Core::multiply(x[i], y[j], d[i][j]);
  }

 private:
  // LDS is read 16 bytes at a time at most: rows are aligned to no more.
  static __device__ __forceinline__ typename Core::Input fetch(const T* from) {
    if constexpr (Core::kPerLane * sizeof(T) <= 16) {
      return read<Core::kPerLane>(from);
    } else {
      const auto low = read<8>(from), high = read<8>(from + 8);
      return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
  }
};

}  // namespace kiln::mma
