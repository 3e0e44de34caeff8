// How tiles that are copied to shared memory as they are lie there, and how a wave multiplies two.
//
// A tile of an operand has kRows rows and BlockK elements along k; in lines: of rows, where it is
// contiguous along k, else of k. StagedTile::kSize elements it takes, place(row, k) is where the
// 16 bytes from there on lie (row or k, whichever is contiguous, a multiple of as many elements).
// multiply(A{}, B{}, tile, a, row_a, b, row_b, k) adds the product of kStep elements of each of the
// wave's rows, which begin at row_a and row_b (multiples of 16), from k on.
#pragma once

#include <kiln/copies.h>
#include <kiln/mma.h>

namespace kiln::mma {

#if defined(__CUDA__)
#include <nvidia/matrices.h>  // load_matrices
#endif

// Elements of more than 16 bits, along k: lines are 16 bytes longer than they need be, so that
// neighbouring ones start in other banks.
template <typename T, bool AlongK, int Rows, int BlockK, bool = sizeof(T) == 2>
struct StagedTile {
  static_assert(AlongK, "wide elements are read as they lie");
  static constexpr int kPitch = BlockK + 16 / sizeof(T), kSize = Rows * kPitch;
  static __device__ __forceinline__ constexpr int line(int row, int) { return row * kPitch; }
  static __device__ __forceinline__ constexpr int place(int, int k) { return k; }
};

// 16-bit elements: 16 bytes of eight lines are read at once. These must lie in different banks: the
// pieces of 16 bytes of a line change places, in each line other ones.
template <typename T, bool AlongK, int Rows, int BlockK>
struct StagedTile<T, AlongK, Rows, BlockK, true> {
  static constexpr int kPitch = AlongK ? BlockK : Rows, kSize = Rows * BlockK;
  static_assert(kPitch % 16 == 0, "lines of 32 or 64 bytes, or of multiples of 128");

  static __device__ __forceinline__ constexpr int line(int row, int k) {
    return (AlongK ? row : k) * kPitch;
  }
  static __device__ __forceinline__ constexpr int place(int row, int k) {
    const int number = AlongK ? row : k, at = AlongK ? k : row;
    const int other = kPitch % 64 == 0 ? number % 8 : kPitch % 32 == 0 ? number / 2 % 4 : number / 4 % 2;
    return at ^ other * 8;
  }

#if defined(__CUDA__)
  // 16 rows by 16 k. Each lane names a line of eight elements; a matrix is eight lanes' lines, and
  // lands as an operand of the matrix instruction wants it: A's four, B's two for each eight rows.
  static __device__ __forceinline__ Matrices as_a(const T* tile, int row, int k, int lane) {
    if constexpr (AlongK) return load<false>(tile, row + lane % 16, k + lane / 16 * 8);
    return load<true>(tile, row + lane / 8 % 2 * 8, k + lane / 16 * 8 + lane % 8);
  }
  static __device__ __forceinline__ Matrices as_b(const T* tile, int row, int k, int lane) {
    if constexpr (AlongK) return load<false>(tile, row + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8);
    return load<true>(tile, row + lane / 16 * 8, k + lane % 16);
  }

 private:
  template <bool Transposed>
  static __device__ __forceinline__ Matrices load(const T* tile, int row, int k) {
    return load_matrices<Transposed>(tile + line(row, k) + place(row, k));
  }
#else
  static __device__ __forceinline__ T at(const T* tile, int row, int k) {
    const int within = (AlongK ? k : row) % 8;
    return tile[line(row, k) + place(AlongK ? row : row - within, AlongK ? k - within : k) + within];
  }
#endif
};

// How the two are multiplied.
template <typename T, typename Tile, typename A, typename B, bool = sizeof(T) == 2>
struct Staged {
  static constexpr int kStep = Tile::kStep, kUnroll = Tile::kUnroll;
  static __device__ __forceinline__ void multiply(Tile& tile, const T* a, int row_a, const T* b, int row_b,
                                                  int k) {
    tile.multiply(a + row_a * A::kPitch + k, b + row_b * B::kPitch + k, A::kPitch);
  }
};

template <typename T, typename Tile, typename A, typename B>
struct Staged<T, Tile, A, B, true> {
#if defined(__CUDA__)
  using Core = typename Tile::Core;
  static constexpr int kStep = Core::kK, kUnroll = 8;
  static_assert(Core::kM == 16 && Core::kN == 8 && kStep == 16, "as ldmatrix hands matrices out");

  static __device__ __forceinline__ void multiply(Tile& tile, const T* a, int row_a, const T* b, int row_b,
                                                  int k) {
    Matrices x[Tile::kTilesM], y[Tile::kTilesN / 2];
#pragma unroll
    for (int i = 0; i < Tile::kTilesM; ++i) x[i] = A::as_a(a, row_a + i * 16, k, tile.lane);
#pragma unroll
    for (int j = 0; j < Tile::kTilesN / 2; ++j) y[j] = B::as_b(b, row_b + j * 16, k, tile.lane);
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
                                                  int row_a, const T* b, int row_b, int k) {
    alignas(16) T x[M * kStep], y[N * kStep];
    for (int i = 0; i < M * kStep; ++i) x[i] = A::at(a, row_a + i / kStep, k + i % kStep);
    for (int i = 0; i < N * kStep; ++i) y[i] = B::at(b, row_b + i / kStep, k + i % kStep);
    tile.multiply(x, y, kStep);
  }
#endif
};

}  // namespace kiln::mma
