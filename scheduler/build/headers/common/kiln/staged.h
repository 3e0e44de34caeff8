// How tiles that are copied to shared memory as they are lie there, and how a wave multiplies two.
//
// A tile of an operand has kRows rows and BlockK elements along k; in lines: of rows, where it is
// contiguous along k, else of k. StagedTile::kSize elements it takes, place(row, k) is where the
// 16 bytes from there on lie (row or k, whichever is contiguous, a multiple of as many elements).
// `Staged` adds the product of kStep elements of each of the wave's rows, which begin at row_a and
// row_b (multiples of 16), from k on.
#pragma once

#include <kiln/copies.h>
#include <kiln/product.h>

namespace kiln::mma {

#if defined(__CUDA__)
#include <nvidia/matrices.h>  // load_matrices
#endif

// Elements of more than 16 bits, along k: lines are 16 bytes longer than they need be, so that
// neighbouring ones start in other banks.
template <typename T, bool AlongK, int Rows, int BlockK, int = sizeof(T)>
struct StagedTile {
  static_assert(AlongK, "wide elements are read as they lie");
  static constexpr int kPitch = BlockK + 16 / sizeof(T), kSize = Rows * kPitch;
  static __device__ __forceinline__ constexpr int line(int row, int) { return row * kPitch; }
  static __device__ __forceinline__ constexpr int place(int, int k) { return k; }
};

// 16-bit elements: 16 bytes of eight lines are read at once. These must lie in different banks: the
// pieces of 16 bytes of a line change places, in each line other ones.
template <typename T, bool AlongK, int Rows, int BlockK>
struct StagedTile<T, AlongK, Rows, BlockK, 2> {
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
  // 16 rows by 16 k, from row + more and k on, multiples of 16. Each lane names a line of eight
  // elements; a matrix is eight lanes' lines, and lands as an operand of the matrix instruction wants
  // it: A's four, B's two for each eight rows.
  static __device__ __forceinline__ Matrices as_a(const T* tile, int row, int more, int k, int lane) {
    if constexpr (AlongK) return load(tile, row, more, k, lane % 16, lane / 16 * 8);
    return load(tile, row, more, k, lane / 8 % 2 * 8, lane / 16 * 8 + lane % 8);
  }
  static __device__ __forceinline__ Matrices as_b(const T* tile, int row, int more, int k, int lane) {
    if constexpr (AlongK) return load(tile, row, more, k, lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
    return load(tile, row, more, k, lane / 16 * 8, lane % 16);
  }

 private:
  // What is the lane's own comes apart from what all lanes share, and what is known beforehand last:
  // an offset of the instruction.
  static __device__ __forceinline__ Matrices load(const T* tile, int row, int more, int k, int own_row,
                                                  int own_k) {
    const int own = line(own_row, own_k) + place(own_row, own_k);
    if constexpr (AlongK) return load_matrices<false>(tile + row * kPitch + (own ^ k) + more * kPitch);
    return load_matrices<true>(tile + ((row + more) ^ own) + k * kPitch);
  }
#else
  static __device__ __forceinline__ T at(const T* tile, int row, int k) {
    const int within = (AlongK ? k : row) % 8;
    return tile[line(row, k) + place(AlongK ? row : row - within, AlongK ? k - within : k) + within];
  }
#endif
};

// 8-bit elements, along k: two neighbours as one of 16 bits, which matrix instructions want in the
// same places.
template <typename T, bool AlongK, int Rows, int BlockK>
struct StagedTile<T, AlongK, Rows, BlockK, 1> {
  static_assert(AlongK, "narrow elements are read as they lie");
  using Pairs = StagedTile<uint16_t, true, Rows, BlockK / 2>;
  static constexpr int kPitch = BlockK, kSize = Rows * BlockK;
  static __device__ __forceinline__ constexpr int line(int row, int k) { return 2 * Pairs::line(row, k / 2); }
  static __device__ __forceinline__ constexpr int place(int row, int k) { return 2 * Pairs::place(row, k / 2); }
#if defined(__CUDA__)
  static __device__ __forceinline__ Matrices as_a(const T* tile, int row, int more, int k, int lane) {
    return Pairs::as_a(reinterpret_cast<const uint16_t*>(tile), row, more, k / 2, lane);
  }
  static __device__ __forceinline__ Matrices as_b(const T* tile, int row, int more, int k, int lane) {
    return Pairs::as_b(reinterpret_cast<const uint16_t*>(tile), row, more, k / 2, lane);
  }
#else
  static __device__ __forceinline__ T at(const T* tile, int row, int k) {
    return tile[line(row, k) + place(row, k / 16 * 16) + k % 16];
  }
#endif
};

// How the two are multiplied. Wide elements: as they lie, `multiply` reads them.
template <typename T, typename Tile, typename A, typename B, bool = sizeof(T) <= 2>
struct Staged {
  static constexpr bool kHolds = false;
  static constexpr int kStep = Tile::kStep, kUnroll = Tile::kUnroll;
  static __device__ __forceinline__ void multiply(Tile& tile, const T* a, int row_a, const T* b, int row_b,
                                                  int k) {
    tile.multiply(a + row_a * A::kPitch + k, b + row_b * B::kPitch + k, A::kPitch);
  }
};

// 16-bit elements, and narrower ones: `read` takes what `multiply` wants to registers, so that the next step's are on
// their way while one is multiplied.
template <typename T, typename Tile, typename A, typename B>
struct Staged<T, Tile, A, B, true> {
  static constexpr bool kHolds = true;
#if defined(__CUDA__)
  using Core = typename Tile::Core;
  static constexpr int kStep = Core::kK;
  static_assert(Core::kM == 16 && Core::kN == 8 && kStep * sizeof(T) == 32, "as ldmatrix hands matrices out");
  struct Held {
    Matrices a[Tile::kTilesM], b[Tile::kTilesN / 2];
  };

  static __device__ __forceinline__ void read(Held& to, const Tile& tile, const T* a, int row_a, const T* b,
                                              int row_b, int k) {
#pragma unroll
    for (int j = 0; j < Tile::kTilesN / 2; ++j) to.b[j] = B::as_b(b, row_b, j * 16, k, tile.lane);
#pragma unroll
    for (int i = 0; i < Tile::kTilesM; ++i) to.a[i] = A::as_a(a, row_a, i * 16, k, tile.lane);
  }
  static __device__ __forceinline__ void multiply(Tile& tile, const Held& of) {
#pragma unroll
    for (int i = 0; i < Tile::kTilesM; ++i)
#pragma unroll
      for (int step = 0; step < Tile::kTilesN; ++step) {
        const int j = i % 2 == 0 ? step : Tile::kTilesN - 1 - step;  // what was last is read again
        const Pair of_b = {{of.b[j / 2].word[j % 2 * 2], of.b[j / 2].word[j % 2 * 2 + 1]}};
        tile.d[i][j] = multiply_add(Core{}, __builtin_bit_cast(typename Core::A, of.a[i]),
                                    __builtin_bit_cast(typename Core::B, of_b), tile.d[i][j]);
      }
  }

 private:
  struct Pair {
    uint32_t word[2];
  };
#else
  static constexpr int kStep = Tile::kStep;
  struct alignas(16) Held {
    T a[Tile::kM * kStep], b[Tile::kN * kStep];
  };

  // Puts the rows in order again: for the emulation of what is made for NVIDIA's GPUs.
  static __device__ __forceinline__ void read(Held& to, const Tile&, const T* a, int row_a, const T* b, int row_b,
                                              int k) {
    for (int i = 0; i < Tile::kM * kStep; ++i) to.a[i] = A::at(a, row_a + i / kStep, k + i % kStep);
    for (int i = 0; i < Tile::kN * kStep; ++i) to.b[i] = B::at(b, row_b + i / kStep, k + i % kStep);
  }
  static __device__ __forceinline__ void multiply(Tile& tile, const Held& of) { tile.multiply(of.a, of.b, kStep); }
#endif
};

// What the wave's lanes wrote to LDS before, they see after.
__device__ __forceinline__ void wave_together() {
#if defined(__CUDA__)
  __nvvm_bar_warp_sync(~0u);
#else
  __builtin_amdgcn_wave_barrier();
#endif
}

// Results by way of LDS, so that a lane has neighbours of a row that are 16 bytes of T: for each
// i < Product::kRows the wave has kRows rows of N columns, `put` by those who hold them and taken in
// kRuns runs a lane. Pieces of 4 change places, and rows are 8 longer than they need be, so that no
// bank is met twice.
template <typename T, typename Product, int N>
struct Turning {
  using Acc = typename Product::Acc;
  static constexpr int kRows = KILN_WAVE_SIZE / Product::kRowLanes, kPitch = N + 8, kSize = kRows * kPitch;
  static constexpr int kEach = kRows * N / KILN_WAVE_SIZE, kMost = 16 / sizeof(T);
  static constexpr int kRun = kEach < kMost ? kEach : kMost, kRuns = kEach / kRun;
  static_assert(kRun * kRuns == kEach && N % kRun == 0, "runs share out the rows");

  static __device__ __forceinline__ int place(int column) { return column ^ column / 32 % 2 * 4; }

  static __device__ __forceinline__ void put(const Product& product, int i, Acc* to) {
    constexpr int kOwn = Product::kRun;
    Acc* const row = to + product.lane / Product::kRowLanes * kPitch;
#pragma unroll
    for (int r = 0; r < Product::kRows; ++r) {
      if (i != r) continue;
#pragma unroll
      for (int j = 0; j < Product::kRuns; ++j) {
        Vec<Acc, kOwn> run;
#pragma unroll
        for (int v = 0; v < kOwn; ++v) run[v] = product.at(r, j * kOwn + v);
        *reinterpret_cast<Vec<Acc, kOwn>*>(row + place(product.column(j))) = run;
      }
    }
  }
  // The lane's run r: which row of the wave's and which column it begins at.
  static __device__ __forceinline__ int row(int lane, int i, int r) {
    return Product::row_of(group(lane, r) * Product::kRowLanes, i);
  }
  static __device__ __forceinline__ int column(int lane, int r) {
    return (lane + r * KILN_WAVE_SIZE) * kRun % N;
  }
  static __device__ __forceinline__ void take(const Acc* from, int lane, int r, Acc* run) {
    constexpr int kPiece = kRun < 4 ? kRun : 4, kWide = kPiece * sizeof(Acc) > 16 ? 2 : kPiece;
    const Acc* const row = from + group(lane, r) * kPitch;
#pragma unroll
    for (int at = 0; at < kRun; at += kWide) {
      const auto part = mma::read<kWide>(row + place(column(lane, r) + at));
#pragma unroll
      for (int v = 0; v < kWide; ++v) run[at + v] = part[v];
    }
  }

 private:
  static __device__ __forceinline__ int group(int lane, int r) { return (lane + r * KILN_WAVE_SIZE) * kRun / N; }
};

}  // namespace kiln::mma
