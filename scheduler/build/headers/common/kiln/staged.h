// How a tile that is copied to shared memory as it is lies there, and how a wave multiplies two.
//
// Rows have BlockK elements and begin kPitch apart. Staged<T, Tile, BlockK>::place(row, k) is where in
// its row a piece of 16 bytes lies, multiply(tile, a, b, k) adds the product of kStep elements of
// each of the wave's rows, from k on; a and b are the wave's first rows, which are multiples of 8.
#pragma once

#include <kiln/copies.h>
#include <kiln/mma.h>

namespace kiln::mma {

#if defined(__CUDA__)
#include <nvidia/matrices.h>  // load_matrices
#endif

// Rows are 16 bytes longer than they need be: neighbouring ones start in other banks.
template <typename T, typename Tile, int BlockK, bool = sizeof(T) == 2>
struct Staged {
  static constexpr int kPitch = BlockK + 16 / sizeof(T), kStep = Tile::kStep;
  static constexpr int kUnroll = Tile::kUnroll;
  static __device__ __forceinline__ constexpr int place(int, int k) { return k; }
  static __device__ __forceinline__ void multiply(Tile& tile, const T* a, const T* b, int k) {
    tile.multiply(a + k, b + k, kPitch);
  }
};

// 16-bit elements: eight rows are read at once, 16 bytes of each. These must lie in different banks:
// the pieces of 16 bytes of a row change places, in each row other ones.
template <typename T, typename Tile, int BlockK>
struct Staged<T, Tile, BlockK, true> {
  static constexpr int kPitch = BlockK;
  static_assert(BlockK % 32 == 0, "rows of 64 bytes, or of multiples of 128");

  static __device__ __forceinline__ constexpr int place(int row, int k) {
    return k ^ (BlockK % 64 == 0 ? row % 8 : row / 2 % 4) * 8;
  }

#if defined(__CUDA__)
  using Core = typename Tile::Core;
  static constexpr int kStep = Core::kK, kUnroll = BlockK / kStep;
  static_assert(Core::kM == 16 && Core::kN == 8 && kStep == 16, "as ldmatrix hands matrices out");

  // Each lane names a row of eight elements; a matrix is eight lanes' rows, and lands as an operand
  // of the matrix instruction wants it.
  static __device__ __forceinline__ void multiply(Tile& tile, const T* a, const T* b, int k) {
    const int lane = tile.lane, row_a = lane % 16, row_b = lane / 16 * 8 + lane % 8;
    Matrices x[Tile::kTilesM], y[Tile::kTilesN / 2];
#pragma unroll
    for (int i = 0; i < Tile::kTilesM; ++i) {
      x[i] = load_matrices(a + (i * 16 + row_a) * kPitch + place(row_a, k + lane / 16 * 8));
    }
#pragma unroll
    for (int j = 0; j < Tile::kTilesN / 2; ++j) {
      y[j] = load_matrices(b + (j * 16 + row_b) * kPitch + place(row_b, k + lane / 8 % 2 * 8));
    }
#pragma unroll
    for (int i = 0; i < Tile::kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < Tile::kTilesN; ++j) {
        const Pair of_b = {{y[j / 2].word[j % 2 * 2], y[j / 2].word[j % 2 * 2 + 1]}};
        tile.d[i][j] =
            multiply_add(Core{}, __builtin_bit_cast(typename Core::A, x[i]),
                         __builtin_bit_cast(typename Core::B, of_b), tile.d[i][j]);
      }
  }

 private:
  struct Pair {
    uint32_t word[2];
  };
#else
  static constexpr int kStep = Tile::kStep, kUnroll = 1;

  // Puts the rows in order again: for the emulation of what is made for NVIDIA's GPUs.
  template <int M, int N, int Size, bool OnCores>
  static __device__ __forceinline__ void multiply(mma::Tile<T, M, N, Size, OnCores>& tile, const T* a,
                                                  const T* b, int k) {
    alignas(16) T x[M * kStep], y[N * kStep];
    for (int i = 0; i < M * kStep; ++i) x[i] = a[at(i / kStep, k + i % kStep)];
    for (int i = 0; i < N * kStep; ++i) y[i] = b[at(i / kStep, k + i % kStep)];
    tile.multiply(x, y, kStep);
  }

 private:
  static __device__ __forceinline__ constexpr int at(int row, int k) {
    return row * kPitch + place(row, k / 8 * 8) + k % 8;
  }
#endif
};

}  // namespace kiln::mma
