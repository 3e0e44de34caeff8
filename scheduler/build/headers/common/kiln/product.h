// A wave's part of a product as a block's kernel wants it: results that are neighbours in a row of
// the result lie together in a lane, so that they are stored together.
//
// Square matrix instructions hand a lane several rows of one column. Taken the other way round (B's
// rows for the instruction's A), these are columns of one row; and where B's rows lie in LDS in
// another order, `slot`, they are neighbours. Of the wave's [M][N] a lane holds row(i) for i < kRows,
// and of it kRun columns from column(j) on, for j < kRuns.
#pragma once

#include <kiln/tile_rows.h>
#include <kiln/vector.h>

namespace kiln::mma {

template <typename T, int Size, bool = instruction::Select<T, Size>::kAvailable>
struct Turns {
  static constexpr bool kHolds = false;
};
template <typename T, int Size>
struct Turns<T, Size, true> {
  using Core = typename instruction::Select<T, Size>::type;
  static constexpr bool kHolds = Core::kM == Core::kN && Core::kColumns == 1 && Core::kRowsA == 1;
};

// As the instruction has them: NVIDIA's (two neighbouring columns) and plain FMA. Also of tiles that
// were copied to LDS as they are (kiln/staged.h), whose rows have no slots.
template <typename T, int M, int N, int Size = 16, bool Staged = false, bool = !Staged && Turns<T, Size>::kHolds>
struct Product : Tile<T, M, N, Size> {
  using Base = Tile<T, M, N, Size>;
  using Acc = typename Base::Acc;
  static constexpr bool kAhead = false;
  static constexpr int kM = M, kN = N;
  static constexpr int kRun = Base::kNeighbours, kRuns = Base::kColumns / kRun;
  static constexpr __device__ __forceinline__ int slot(int n) { return n; }
  using Base::Base;
  __device__ __forceinline__ int column(int j) const { return Base::column(j * kRun); }
};

template <typename T, int M, int N, int Size, bool Staged>
struct Product<T, M, N, Size, Staged, true> {
  using Core = typename instruction::Select<T, Size>::type;
  using Turned = Tile<T, N, M, Size>;
  using Acc = typename Turned::Acc;
  static constexpr int kStep = Turned::kStep, kUnroll = Turned::kUnroll;
  static constexpr int kValues = Core::kValues;
  // Of so many instructions that a lane's neighbours are 16 bytes.
  static constexpr int kTogether = kValues * sizeof(Held<T>) < 16 && Turned::kTilesM % 2 == 0 ? 2 : 1;
  static constexpr int kGroup = kTogether * Core::kM;
  static constexpr int kRows = Turned::kColumns;
  static constexpr int kRun = kTogether * kValues, kRuns = Turned::kRows / kRun;
  Turned turned;

  __device__ __forceinline__ explicit Product(int lane) : turned(lane) {}

  // Where row n of B lies in LDS, of all the block's: one bit of n each.
  static constexpr __device__ __forceinline__ int slot(int n) {
    const int within = n % kGroup, value = within % kRun;
    return n - within + value / kValues * Core::kM + Core::d_row(within / kRun * Core::kN, value % kValues);
  }
  __device__ __forceinline__ int row(int i) const { return turned.column(i); }
  __device__ __forceinline__ int column(int j) const { return j * kGroup + turned.lane / Core::kN * kRun; }
  __device__ __forceinline__ Acc at(int i, int n) const { return turned.at(n, i); }

  template <typename Rows, typename Meanwhile>
  __device__ __forceinline__ void multiply_rows(const Rows& a, const Rows& b, int k, const Meanwhile& meanwhile) {
    turned.multiply_rows(b, a, k, meanwhile);
  }
  static constexpr bool kAhead = Turned::kAhead, kSpreads = Turned::kSpreads;
  using Ahead = typename Turned::Ahead;
  template <typename Rows>
  __device__ __forceinline__ void read_ahead(Ahead& to, const Rows& a, const Rows& b, int k) const {
    turned.read_ahead(to, b, a, k);
  }
  template <bool Spread, typename Rows, typename First, typename Second>
  __device__ __forceinline__ void multiply_ahead(const Ahead& ahead, const Rows& a, int k, const First& first,
                                                 const Second& second) {
    turned.template multiply_ahead<Spread>(ahead, a, k, first, second);
  }
  static constexpr int kBetween = Turned::kBetween;
  template <typename Rows, typename Turn, typename Between>
  __device__ __forceinline__ void multiply_between(Ahead& ahead, const Rows& a, int k, bool reads, const Rows& next_a,
                                                   const Rows& next_b, int next_k, const Turn& turn,
                                                   const Between& between) {
    turned.multiply_between(ahead, a, k, reads, next_b, next_a, next_k, turn, between);
  }
};

// Whether runs of N elements lie at multiples of their size, or of 16 bytes: from `base` on, by
// multiples of the steps that are or-ed in `steps`.
template <int N, typename T>
__device__ __forceinline__ bool is_run(const T* base, int64_t steps) {
  constexpr int kBytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
  return (reinterpret_cast<uintptr_t>(base) | uintptr_t(steps) * sizeof(T)) % kBytes == 0;
}
// Its memory, by whose type the compiler knows how it lies (as in kiln/vector.h); the address says so
// too: of results that were turned the type alone is forgotten before they are stored.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Aligned {
  unsigned char bytes[N * sizeof(T)];
};
template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_run(const T* from) {
  Pack<T, N> pack;
  const void* known = __builtin_assume_aligned(from, alignof(Aligned<T, N>));
  __builtin_memcpy(&pack, static_cast<const Aligned<T, N>*>(known), sizeof(pack));
  return pack;
}
template <int N, typename T>
__device__ __forceinline__ void store_run(T* to, const Pack<T, N>& pack) {
#if defined(__AMDGCN__)
  // In words: elements by themselves are joined with those that another branch stores one by one, and
  // what is left of 16 bytes then is narrow.
  constexpr int kBytes = sizeof(pack) < 16 ? sizeof(pack) : 16;
  if constexpr (kBytes % 4 == 0) {
    using Words = uint32_t __attribute__((ext_vector_type(kBytes / 4), may_alias));
#pragma unroll
    for (int at = 0; at < int(sizeof(pack)); at += kBytes) {
      Words words;
      __builtin_memcpy(&words, reinterpret_cast<const char*>(&pack) + at, kBytes);
      *reinterpret_cast<Words*>(reinterpret_cast<char*>(to) + at) = words;
    }
    return;
  }
#endif
  void* known = __builtin_assume_aligned(to, alignof(Aligned<T, N>));
  __builtin_memcpy(static_cast<Aligned<T, N>*>(known), &pack, sizeof(pack));
}

// In how many copies code follows `take_row`: results have no numbers in registers elsewhere.
#if defined(__AMDGCN__)
constexpr int kRowsInARow = 1;
#else
constexpr int kRowsInARow = 256;
#endif

// A row's results out of all that the lane holds: `i` is the same in all lanes, and the code of what
// follows is there once for all rows.
template <typename Product>
__device__ __forceinline__ void take_row(const Product& product, int i,
                                         typename Product::Acc (&taken)[Product::kRuns * Product::kRun]) {
#pragma unroll
  for (int r = 0; r < Product::kRows; ++r) {
    if (i == r) {
#pragma unroll
      for (int n = 0; n < Product::kRuns * Product::kRun; ++n) {
        taken[n] = product.at(r, n);
#if defined(__AMDGCN__)
        asm volatile("" : "+v"(taken[n]));  // a branch: choosing each of them takes longer
#endif
      }
    }
  }
}

}  // namespace kiln::mma
