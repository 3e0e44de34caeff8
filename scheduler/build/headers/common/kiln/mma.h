// A wave's part of a matrix product, one interface over matrix instructions and plain FMA.
//
// Which k a lane supplies differs between instructions, but A and B always agree, and a sum over k
// may be taken in any order: each lane therefore reads its own run of consecutive k, whatever the
// instruction calls them.
#pragma once

#include <hip/hip_runtime.h>
#include <kiln/held.h>
#include <kiln/matrix_instructions.h>
#include <kiln/types.h>

namespace kiln::mma {

template <typename T>
struct Accumulate {
  using type = float;
};
template <>
struct Accumulate<double> {
  using type = double;
};
template <>
struct Accumulate<int8_t> {
  using type = int32_t;
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

// Keeps the compiler from moving what comes before and after past each other.
__device__ __forceinline__ void in_this_order() {
#if defined(__AMDGCN__)
  __builtin_amdgcn_sched_barrier(0);
#endif
}

// Of what stands since the last `in_this_order`: one of so many reads of LDS, or loads from memory,
// and a matrix instruction in turn. All at once they fill a queue, and the wave waits before it.
template <int Count>
__device__ __forceinline__ void reads_among_products() {
#if defined(__AMDGCN__)
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    __builtin_amdgcn_sched_group_barrier(0x100, 1, 0);
    __builtin_amdgcn_sched_group_barrier(0x008, 1, 0);
  }
#endif
}
template <int Count>
__device__ __forceinline__ void loads_among_products() {
#if defined(__AMDGCN__)
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    __builtin_amdgcn_sched_group_barrier(0x020, 1, 0);
    __builtin_amdgcn_sched_group_barrier(0x008, 1, 0);
  }
#endif
}

// Rows of a tile in LDS: `at<N>(row, own, k, own_k)` reads N elements of row `row + own` from `k +
// own_k` on. What is the lane's own comes apart from what all lanes share, `row` and `k` being
// multiples of what theirs are below. These rows lie `pitch` elements apart.
template <typename T>
struct Pitched {
  const T* base;
  int pitch;
  template <int N>
  __device__ __forceinline__ Vec<T, N> at(int row, int own, int k, int own_k) const {
    return read<N>(base + row * pitch + k + (own * pitch + own_k));
  }
};

// How many waves stand along m, so that each has a rectangle of whole tiles of `size` rows and
// columns that is as square as can be (less is read from LDS). 0: no way to share the block out.
constexpr int waves_along_m(int block_m, int block_n, int waves, int size = 16) {
  int best = 0, least = 1 << 30;
  for (int along_m = 1; along_m <= waves; ++along_m) {
    if (waves % along_m != 0) continue;
    const int along_n = waves / along_m;
    if (block_m % (along_m * size) != 0 || block_n % (along_n * size) != 0) continue;
    const int reads = block_m / along_m + block_n / along_n;
    if (reads < least) best = along_m, least = reads;
  }
  return best;
}

// ---- D = A B + C by one matrix instruction; its modifiers are 0 -----------------------------------

#if defined(__CUDA__)
#include <nvidia/mma.h>  // by inline PTX
#elif defined(KILN_MATRIX_INSTRUCTIONS)
#define KILN_WORDS(name, of) __builtin_bit_cast(instruction::name::Words, of)
#define KILN_CALL_0(name) __builtin_amdgcn_##name(a, b, c)
#define KILN_CALL_3(name) __builtin_amdgcn_##name(a, b, c, 0, 0, 0)
#define KILN_CALL_words_0(name) __builtin_amdgcn_##name(KILN_WORDS(name, a), KILN_WORDS(name, b), c)
#define KILN_CALL_words_3(name) __builtin_amdgcn_##name(KILN_WORDS(name, a), KILN_WORDS(name, b), c, 0, 0, 0)
#define KILN_CALL_iu8(name) \
  __builtin_amdgcn_##name(true, KILN_WORDS(name, a), true, KILN_WORDS(name, b), c, false)
#define KILN_CALL_fp8(name) KILN_CALL_f8f6f4(name, 0)
#define KILN_CALL_bf8(name) KILN_CALL_f8f6f4(name, 1)
#define KILN_CALL_f8f6f4(name, format)                                                           \
  __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(KILN_WORDS(name, a), KILN_WORDS(name, b), c,  \
                                                   format, format, 0, 0, 0, 0)
#define KILN_MULTIPLY(name, call)                                                                  \
  __device__ __forceinline__ instruction::name::D multiply_add(                                    \
      instruction::name, instruction::name::A a, instruction::name::B b, instruction::name::D c) { \
    return KILN_CALL_##call(name);                                                                 \
  }
KILN_MATRIX_INSTRUCTIONS(KILN_MULTIPLY)
#undef KILN_MULTIPLY
#endif

// ---- a wave's rectangle: D[M][N] += sum over k of A[M][k] * B[N][k] --------------------------------
//
// A and B lie in LDS, k contiguous, in rows that `Pitched` or another of its kind reads; with the
// pitch alone (a multiple of 16 bytes), from `a` and `b` on; what is to be done while these reads are
// on their way, `meanwhile` does. The lane holds the elements (row(i), column(j)) for i < kRows, j < kColumns. kUnroll is how many steps the
// caller's loop should have in a row: in more of them, loads moved ahead take too many registers.

template <typename T, int M, int N, int Size = 16, bool = instruction::Select<T, Size>::kAvailable>
struct Tile {  // plain FMA: lanes in a grid of 8 columns, each with rows and columns strided
  static_assert(Size == 16, "this target has no matrix instruction of that size");
  using Acc = typename Accumulate<T>::type;
  static constexpr int kLaneColumns = 8, kLaneRows = KILN_WAVE_SIZE / kLaneColumns;
  static constexpr int kRows = M / kLaneRows, kColumns = N / kLaneColumns;
  static constexpr int kRowLanes = kLaneColumns;  // that hold a row together
  static constexpr int kNeighbours = 1;           // columns next to each other
  static constexpr int kStep = 4, kUnroll = 1;
  Acc d[kRows][kColumns] = {};
  int lane;

  __device__ __forceinline__ explicit Tile(int lane_) : lane(lane_) {}
  static __device__ __forceinline__ int row_of(int lane, int i) { return lane / kLaneColumns + i * kLaneRows; }
  __device__ __forceinline__ int row(int i) const { return row_of(lane, i); }
  __device__ __forceinline__ int column(int j) const {
    return lane % kLaneColumns + j * kLaneColumns;
  }
  __device__ __forceinline__ Acc at(int i, int j) const { return d[i][j]; }
  __device__ __forceinline__ void put(int i, int j, Acc result) { d[i][j] = result; }

  __device__ __forceinline__ void multiply(const T* a, const T* b, int pitch) {
    multiply_rows(Pitched<T>{a, pitch}, Pitched<T>{b, pitch}, 0, [] {});
  }
  template <typename RowsA, typename RowsB, typename Meanwhile>
  __device__ __forceinline__ void multiply_rows(const RowsA& a, const RowsB& b, int k, const Meanwhile& meanwhile) {
    Acc x[kRows][kStep], y[kColumns][kStep];
#pragma unroll
    for (int i = 0; i < kRows; ++i) fetch(x[i], a, i * kLaneRows, lane / kLaneColumns, k);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) fetch(y[j], b, j * kLaneColumns, lane % kLaneColumns, k);
    meanwhile();
#pragma unroll
    for (int s = 0; s < kStep; ++s)
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) d[i][j] = multiplied(x[i][s], y[j][s], d[i][j]);
  }

 private:
  static __device__ __forceinline__ Acc multiplied(Acc x, Acc y, Acc sum) {
    if constexpr (__is_same(Acc, int32_t)) return x * y + sum;
    else return __builtin_elementwise_fma(x, y, sum);
  }
  template <typename Rows>
  static __device__ __forceinline__ void fetch(Acc (&to)[kStep], const Rows& rows, int row, int own, int k) {
    constexpr int kWide = sizeof(T) == 8 ? 2 : kStep;
#pragma unroll
    for (int s = 0; s < kStep; s += kWide) {
      const auto part = rows.template at<kWide>(row, own, k + s, 0);
#pragma unroll
      for (int i = 0; i < kWide; ++i) to[s + i] = static_cast<Acc>(part[i]);
    }
  }
};

template <typename T, int M, int N, int Size>
struct Tile<T, M, N, Size, true> {  // on matrix cores
  using Core = typename instruction::Select<T, Size>::type;
  using Acc = typename Core::Accumulator;
  static constexpr int kTilesM = M / Core::kM, kTilesN = N / Core::kN;
  static constexpr int kOwnColumns = Core::kColumns, kOwnRows = Core::kValues / kOwnColumns;
  static constexpr int kRows = kTilesM * kOwnRows, kColumns = kTilesN * kOwnColumns;
  static constexpr int kRowLanes = Core::kN / kOwnColumns, kNeighbours = kOwnColumns;
  static constexpr int kRowsA = Core::kRowsA;  // of each a lane reads one run of k
  static constexpr int kRun = Core::kValuesA / kRowsA, kPerLane = Core::kRepeats * kRun;
  using Memory = Held<T>;
  static constexpr int kPerLaneBytes = kPerLane * sizeof(Memory);
  // What a lane reads of LDS at once; of 8 bits the second 16 bytes are half a step further.
  static constexpr int kAtOnce = kPerLaneBytes <= 16 ? kPerLane : 16 / sizeof(Memory);
  static constexpr int kStep = Core::kRepeats * Core::kK, kUnroll = kPerLaneBytes < 32 ? 4 : 1;
  using Input = Vec<Memory, kPerLane>;
  // One row of many tiles: all of B in registers beside all of D would not leave enough of the 256
  // for the rest, and no second row reads B again.
  static constexpr bool kOneByOne =
      kTilesM == 1 && kTilesN * (sizeof(Input) + sizeof(typename Core::D)) > 200 * 4;
  typename Core::D d[kTilesM][kTilesN] = {};
  int lane;

  __device__ __forceinline__ explicit Tile(int lane_) : lane(lane_) {}
  static __device__ __forceinline__ int row_of(int lane, int i) {
    return i / kOwnRows * Core::kM + Core::d_row(lane, i % kOwnRows * kOwnColumns);
  }
  __device__ __forceinline__ int row(int i) const { return row_of(lane, i); }
  __device__ __forceinline__ int column(int j) const {
    return j / kOwnColumns * Core::kN + Core::d_column(lane, j % kOwnColumns);
  }
  __device__ __forceinline__ Acc at(int i, int j) const {
    return d[i / kOwnRows][j / kOwnColumns][value(i, j)];
  }
  __device__ __forceinline__ void put(int i, int j, Acc result) {
    d[i / kOwnRows][j / kOwnColumns][value(i, j)] = result;
  }

  __device__ __forceinline__ void multiply(const Memory* a, const Memory* b, int pitch) {
    multiply_rows(Pitched<Memory>{a, pitch}, Pitched<Memory>{b, pitch}, 0, [] {});
  }
  template <typename RowsA, typename RowsB, typename Meanwhile>
  __device__ __forceinline__ void multiply_rows(const RowsA& a, const RowsB& b, int k, const Meanwhile& meanwhile) {
    Input x[kTilesM][kRowsA], y[kTilesN];
    const int own_k = Core::a_column(lane, 0) * (kAtOnce / leading());
    const int own_a = Core::a_row(lane, 0), own_b = Core::b_column(lane, 0);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int r = 0; r < kRowsA; ++r) {
        x[i][r] = fetch(a, i * Core::kM + r * (Core::kM / kRowsA), own_a, k, own_k);
      }
    if constexpr (kOneByOne) {
      meanwhile();
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        add_product(x[0], fetch(b, j * Core::kN, own_b, k, own_k), d[0][j]);
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) y[j] = fetch(b, j * Core::kN, own_b, k, own_k);
    meanwhile();
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) add_product(x[i], y[j], d[i][j]);
  }

  // The same with the reads of the next step ahead: while half of a step is multiplied, what the other
  // half needs is on its way, then half of the next. `first` is done between a step's own reads and its
  // products, `second` between both halves: it reads ahead for the next step. `Spread`: these reads stand
  // one by one among the second half's products, from `in_this_order` on.
  static constexpr bool kAhead = kPerLaneBytes < 32 && kTilesN % 2 == 0 && kRowsA == 1 && !kOneByOne;
  // Where the order of instructions may be said: of more results it takes too many registers.
  static constexpr bool kSpreads = kTilesM * kTilesN * Core::kValues <= 64;
  struct Ahead {
    Input a[kTilesM], b[kTilesN > 1 ? kTilesN / 2 : 1];
  };
  template <typename RowsA, typename RowsB>
  __device__ __forceinline__ void read_ahead(Ahead& to, const RowsA& a, const RowsB& b, int k) const {
    const int own_k = Core::a_column(lane, 0) * (kAtOnce / leading());
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) to.a[i] = fetch(a, i * Core::kM, Core::a_row(lane, 0), k, own_k);
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) to.b[j] = fetch(b, j * Core::kN, Core::b_column(lane, 0), k, own_k);
  }
  template <bool Spread, typename RowsB, typename First, typename Second>
  __device__ __forceinline__ void multiply_ahead(const Ahead& ahead, const RowsB& b, int k, const First& first,
                                                 const Second& second) {
    const int own_k = Core::a_column(lane, 0) * (kAtOnce / leading());
    const Ahead now = ahead;
    Input rest[kTilesN / 2];
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) {
      rest[j] = fetch(b, (kTilesN / 2 + j) * Core::kN, Core::b_column(lane, 0), k, own_k);
    }
    first();
    multiply_half(now.a, now.b, 0);
    second();
    multiply_half(now.a, rest, kTilesN / 2);
    if constexpr (Spread) {
      reads_among_products<kTilesM + kTilesN / 2>();
      in_this_order();
    }
  }

  // The same with the reads one by one among the products, and with what `between(n)` does, for
  // n < kBetween. `turn` is done between both halves: from then on the next step lies in LDS, which is
  // read where `reads`.
  static constexpr int kBetween = 2 * kTilesM;
  template <typename RowsA, typename RowsB, typename Turn, typename Between>
  __device__ __forceinline__ void multiply_between(Ahead& ahead, const RowsB& b, int k, bool reads,
                                                   const RowsA& next_a, const RowsB& next_b, int next_k,
                                                   const Turn& turn, const Between& between) {
    const int own_k = Core::a_column(lane, 0) * (kPerLane / leading());
    constexpr int kHalf = kTilesN / 2, kEach = (kTilesM + kHalf + kTilesM - 1) / kTilesM;
    constexpr int kEachRest = (kHalf + kTilesM - 1) / kTilesM;
    const Ahead now = ahead;
    Input rest[kHalf];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1) turn();
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        in_this_order();
        if (half == 0) {
#pragma unroll
          for (int j = i * kEachRest; j < kHalf && j < (i + 1) * kEachRest; ++j) {
            rest[j] = fetch(b, (kHalf + j) * Core::kN, Core::b_column(lane, 0), k, own_k);
          }
        } else if (reads) {
#pragma unroll
          for (int r = i * kEach; r < kHalf + kTilesM && r < (i + 1) * kEach; ++r) {
            if (r < kHalf) {
              ahead.b[r] = fetch(next_b, r * Core::kN, Core::b_column(lane, 0), next_k, own_k);
            } else {
              ahead.a[r - kHalf] = fetch(next_a, (r - kHalf) * Core::kM, Core::a_row(lane, 0), next_k, own_k);
            }
          }
        }
        between(half * kTilesM + i);
        in_this_order();
        const Input x[kRowsA] = {now.a[i]};
#pragma unroll
        for (int j = 0; j < kHalf; ++j) add_product(x, half == 0 ? now.b[j] : rest[j], d[i][half * kHalf + j]);
      }
    }
  }

 private:
  struct PartsB {
    typename Core::B part[Core::kRepeats];
  };

  // How many of a lane's values of A, from the first on, are neighbours along k in one row.
  static constexpr int leading() {
    int count = 1;
    while (count < Core::kValuesA && Core::a_row(0, count) == Core::a_row(0, 0) &&
           Core::a_column(0, count) == count) {
      ++count;
    }
    return count;
  }
  // The place of a lane's value of A in what it reads of that row: its k are taken in order.
  static constexpr int place(int value) {
    int before = 0;
    for (int other = 0; other < Core::kValuesA; ++other) {
      before += Core::a_row(0, other) == Core::a_row(0, value) &&
                Core::a_column(0, other) < Core::a_column(0, value);
    }
    return before;
  }

  static __device__ __forceinline__ constexpr int value(int i, int j) {
    return i % kOwnRows * kOwnColumns + j % kOwnColumns;
  }

  __device__ __forceinline__ void multiply_half(const Input (&a)[kTilesM], const Input* b, int from) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      const Input x[kRowsA] = {a[i]};
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j) add_product(x, b[j], d[i][from + j]);
    }
  }

  static __device__ __forceinline__ void add_product(const Input (&a)[kRowsA], Input b,
                                                     typename Core::D& sum) {
    const auto y = __builtin_bit_cast(PartsB, b);
#pragma unroll
    for (int r = 0; r < Core::kRepeats; ++r) {
      sum = multiply_add(Core{}, part_of(a, r), y.part[r], sum);
    }
  }

  static __device__ __forceinline__ typename Core::A part_of(const Input (&rows)[kRowsA], int r) {
    if constexpr (kRowsA == 1) {
      struct PartsA {
        typename Core::A part[Core::kRepeats];
      };
      return __builtin_bit_cast(PartsA, rows[0]).part[r];
    } else {
      typename Core::A part;
#pragma unroll
      for (int v = 0; v < Core::kValuesA; ++v) {
        part[v] = rows[Core::a_row(0, v) / (Core::kM / kRowsA)][r * kRun + place(v)];
      }
      return part;
    }
  }

  // LDS is read 16 bytes at a time at most: rows are aligned to no more.
  template <typename Rows>
  static __device__ __forceinline__ Input fetch(const Rows& rows, int row, int own, int k, int own_k) {
    static_assert(kRun == Core::kValuesB, "rows of A and columns of B are read alike");
    if constexpr (kPerLaneBytes <= 16) {
      return rows.template at<kPerLane>(row, own, k, own_k);
    } else if constexpr (sizeof(Memory) == 1) {
      struct Halves {
        Vec<Memory, 16> low, high;
      };
      return __builtin_bit_cast(Input, Halves{rows.template at<16>(row, own, k, own_k),
                                              rows.template at<16>(row, own, k + kStep / 2, own_k)});
    } else {
      const auto low = rows.template at<8>(row, own, k, own_k);
      const auto high = rows.template at<8>(row, own, k + 8, own_k);
      return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
  }
};

}  // namespace kiln::mma
