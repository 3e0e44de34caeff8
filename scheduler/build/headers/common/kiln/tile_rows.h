// How the rows of a tile lie in LDS: BlockK elements each, one behind the other, nothing between.
//
// Pieces of 16 bytes change places within 128 bytes (rows of 256 and more: within themselves), other
// ones in each row, so that neither what a wave reads (a run of k of 16 rows) nor what it writes
// (along k, or 8 bytes of k of rows that it read along the rows) meets a bank twice. Each bit of the
// piece's number is the exclusive or of bits of the row's, which makes places linear: what a lane has
// of its own and what all lanes share are worked out apart. Bits 3 and 1, 2, 5 serve the reads of
// CDNA 4's 64 banks and the writes along the rows; `scheduler/cycles/banks.py` knows the rules.
#pragma once

#include <kiln/mma.h>

namespace kiln::mma {

template <typename T, int BlockK>
struct TileRows {
  static constexpr int kPiece = 16 / sizeof(T), kBytes = BlockK * sizeof(T);
  static_assert(kBytes >= 32 && (kBytes & (kBytes - 1)) == 0, "rows are powers of 2, of 32 bytes at least");

  static constexpr __device__ __forceinline__ int bit(int row, int number) { return row >> number & 1; }

  // What a row's pieces are moved by, in elements.
  static constexpr __device__ __forceinline__ int moved(int row) {
    if constexpr (kBytes == 32) {
      return ((bit(row, 2) ^ bit(row, 5)) + (bit(row, 2) ^ bit(row, 3)) * 2 + bit(row, 4) * 4) * kPiece;
    } else if constexpr (kBytes == 64) {
      return ((bit(row, 1) ^ bit(row, 5)) + (bit(row, 2) ^ bit(row, 4)) * 2 + (bit(row, 1) ^ bit(row, 3)) * 4) *
             kPiece;
    } else {
      const int low = (bit(row, 0) ^ bit(row, 5)) + (bit(row, 1) ^ bit(row, 3) ^ bit(row, 5)) * 2 +
                      (bit(row, 2) ^ bit(row, 4)) * 4;
      return (kBytes == 128 ? low : low + bit(row, 3) * 8) * kPiece;
    }
  }

  // Where 16 bytes of a row lie, or a part of them, from `k` on.
  static constexpr __device__ __forceinline__ int place(int row, int k) { return (row * BlockK + k) ^ moved(row); }

  // The rows from `first` on, a multiple of 16, for `Tile::multiply_rows`.
  const T* tile;
  int first;
  template <int N>
  __device__ __forceinline__ Vec<T, N> at(int row, int own, int k, int own_k) const {
    return read<N>(tile + (first + row) * BlockK + (place(own, own_k) ^ k ^ moved(first + row)));
  }
};

}  // namespace kiln::mma
