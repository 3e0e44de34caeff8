// A wave's part of attention on matrix cores, the weights in registers between the two products.
#pragma once

#include <kiln/attention_core.h>
#include <kiln/attention_layout.h>
#include <kiln/attention_softmax.h>

#if defined(KILN_MATRIX_INSTRUCTIONS)

namespace kiln::attention {

// Of a wave: WaveM queries, a tile of BlockN keys at a time. `Shape` is the kernel's.
template <typename Shape>
struct Cores {
  using T = typename Shape::T;
  static constexpr int kWaveM = Shape::kWaveM, kBlockN = Shape::kBlockN;
  static constexpr bool kWide = sizeof(T) == 2 && kWaveM % 32 == 0 && instruction::Select<T, 32>::kAvailable;
  using C = Core<T, kWide ? 32 : 16>;
  using Acc = typename C::Acc;
  using Keys = Swizzled<T, Shape::kDepth>;
  using Values = Swizzled<T, kBlockN>;
  static constexpr int kTilesQ = kWaveM / C::kQueries, kTilesK = kBlockN / C::kKeys;
  static constexpr int kTilesV = Shape::kValueDepth / C::kKeys;
  static constexpr int kStepsD = Shape::kDepth / C::kStep, kStepsN = kBlockN / C::kStep;
  static constexpr int kRun = C::kRun, kOwn = kTilesK * C::kOwnKeys;
  static constexpr bool kFromLds = Shape::kQueriesInLds;
  // Where registers are few: how many steps' operands may be read ahead.
  static constexpr int kUnrollD = kFromLds ? 2 : kStepsD;
  static constexpr int kTiles = of_both(kBlockN, kBlockN * Shape::kDepth, kBlockN * Shape::kValueDepth);
  static constexpr int kShared = kTiles + (kFromLds ? Shape::kBlockM * Shape::kDepth : 0);
  static_assert(kWaveM % C::kQueries == 0 && kBlockN % C::kStep == 0, "whole tiles");
  static_assert(Shape::kDepth % C::kStep == 0 && Shape::kValueDepth % C::kStep == 0, "whole steps");

  int lane, wave_row, line, begin;
  const T* query_tile;
  typename C::Rows queries[kFromLds ? 1 : kTilesQ][kFromLds ? 1 : kStepsD];
  typename C::D scores[kTilesQ][kTilesK];
  typename C::D output[kTilesQ][kTilesV] = {};
  Running<Acc> running[kTilesQ][C::kOwnQueries];

  KILN_DEVICE Cores(int lane_, int wave_row_)
      : lane(lane_), wave_row(wave_row_), line(C::line(lane_)), begin(C::begin(lane_)) {}

  // The wave's queries into registers or, where those would be too many, the block's into LDS.
  template <typename Index, typename Read>
  KILN_DEVICE void take_queries(T* lds, Index first_row, Index rows, Read read) {
    if constexpr (kFromLds) {
      using All = Lines<T, Keys, Shape::kBlockM, Shape::kDepth, Shape::kRealDepth, Shape::kPackQ, Shape::kThreads>;
      T* const tile = lds + kTiles;
      All::template move<4>(tile, first_row, rows, read);
      query_tile = tile;
    } else {
#pragma unroll
      for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
        for (int q = 0; q < C::kOwnQueries; ++q) {
          const Index row = first_row + wave_row + t * C::kQueries + C::query(lane, q);
#pragma unroll
          for (int s = 0; s < kStepsD; ++s) queries[t][s].row[q] = query_part(row, rows, s, read);
        }
#pragma unroll
      for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
        for (int q = 0; q < C::kOwnQueries; ++q)
#pragma unroll
          for (int s = 0; s < kStepsD; ++s) settle(queries[t][s].row[q]);
    }
  }

  // Scores of a tile of keys, not yet scaled.
  KILN_DEVICE void score(const T* key_tile) {
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int k = 0; k < kTilesK; ++k) scores[t][k] = {};
#pragma unroll kUnrollD
    for (int s = 0; s < kStepsD; ++s) {
      typename C::Rows of_queries[kTilesQ];
#pragma unroll
      for (int t = 0; t < kTilesQ; ++t) of_queries[t] = queries_at(t, s);
#pragma unroll
      for (int k = 0; k < kTilesK; ++k) {
        const auto part = fetch<Keys>(key_tile, C::key(k * C::kOwnKeys), s * C::kStep);
#pragma unroll
        for (int t = 0; t < kTilesQ; ++t) C::multiply(part, of_queries[t], scores[t][k]);
      }
      if (s % 2 == 1) limit_reads();
    }
    interleave<kStepsD * kTilesK>();
  }

  // Each score becomes `change(row, column, score)`, where both are counted from the first ones.
  template <typename Change>
  KILN_DEVICE void adjust(Change change) {
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q) {
        const int row = wave_row + t * C::kQueries + C::query(lane, q);
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
          Acc value = at(scores[t], own, q);
          put(scores[t], own, q, change(row, C::key(own) + C::key_of_lane(lane), value));
        }
      }
  }

  // What is read beside the scores, of W neighbouring keys at once.
  template <typename M, int W>
  struct Beside {
    static_assert(kRun % W == 0, "a lane has runs of whole packs");
    static constexpr int kWidth = W;
    Pack<M, W> pack[kTilesQ][C::kOwnQueries][kOwn / W];
  };
  template <typename M, int W, typename Read>
  KILN_DEVICE void look(Beside<M, W>& beside, Read read) const {
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q)
#pragma unroll
        for (int own = 0; own < kOwn; own += W) {
          const int row = wave_row + t * C::kQueries + C::query(lane, q);
          beside.pack[t][q][own / W] = read(row, C::key(own) + C::key_of_lane(lane));
        }
  }
  // Each score becomes `change(row, column, what lies beside it, score)`.
  template <typename M, int W, typename Change>
  KILN_DEVICE void adjust(const Beside<M, W>& beside, Change change) {
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q) {
        const int row = wave_row + t * C::kQueries + C::query(lane, q);
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
          const Acc value = at(scores[t], own, q);
          const M other = beside.pack[t][q][own / W].data[own % W];
          put(scores[t], own, q, change(row, C::key(own) + C::key_of_lane(lane), other, value));
        }
      }
  }

  // What each row's weights are shifted by, from now on: they are 2^(score * factor - shift).
  KILN_DEVICE void raise(Acc factor) {
    Acc keep[kTilesQ][C::kOwnQueries];
    bool raised = false;
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q) {
        Acc top = at(scores[t], 0, q);
#pragma unroll
        for (int own = 1; own < kOwn; ++own) top = greater(top, at(scores[t], own, q));
        top = over_keys(top, [](Acc a, Acc b) { return greater(a, b); });
        keep[t][q] = running[t][q].raise(top, factor);
        raised |= keep[t][q] != Acc(1);
      }
    if (__any(raised)) scale_output(keep);
  }

  // Adds the values times their weights, which are made a step ahead: while the matrix cores multiply.
  KILN_DEVICE void accumulate(const T* value_tile, Acc factor) {
    typename C::Rows weights[2][kTilesQ];
    weigh(weights[0], 0, factor);
#pragma unroll
    for (int s = 0; s < kStepsN; ++s) {
      if (s + 1 < kStepsN) weigh(weights[(s + 1) % 2], s + 1, factor);
#pragma unroll
      for (int v = 0; v < kTilesV; ++v) {
        const auto part = fetch<Values>(value_tile, C::key(v * C::kOwnKeys), s * C::kStep);
#pragma unroll
        for (int t = 0; t < kTilesQ; ++t) C::multiply(part, weights[s % 2][t], output[t][v]);
        if (v % 4 == 3) limit_reads();
      }
    }
    interleave<kStepsN * kTilesV>();
  }

  // `each(row, depth, values, highest, total)` for every W neighbouring depths of the wave's rows, not
  // yet divided by the total, with what they are shifted by (of the scores times the factor).
  template <int W, typename Each>
  KILN_DEVICE void finish(Each each) {
    static_assert(kRun % W == 0, "a lane has runs of whole packs");
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q) {
        const int row = wave_row + t * C::kQueries + C::query(lane, q);
        const Acc total = over_keys(running[t][q].total, [](Acc a, Acc b) { return a + b; });
#pragma unroll
        for (int own = 0; own < kTilesV * C::kOwnKeys; own += W) {
          Pack<Acc, W> values;
#pragma unroll
          for (int w = 0; w < W; ++w) values[w] = at(output[t], own + w, q);
          each(row, C::key(own) + C::key_of_lane(lane), values, running[t][q].highest, total);
        }
      }
  }

 private:
  template <int N>
  KILN_DEVICE static Acc at(const typename C::D (&tiles)[N], int own, int q) {
    return tiles[own / C::kOwnKeys][q * C::kOwnKeys + own % C::kOwnKeys];
  }
  template <int N>
  KILN_DEVICE static void put(typename C::D (&tiles)[N], int own, int q, Acc value) {
    tiles[own / C::kOwnKeys][q * C::kOwnKeys + own % C::kOwnKeys] = value;
  }

  template <typename Index, typename Read>
  KILN_DEVICE typename C::Part query_part(Index row, Index rows, int s, Read read) const {
    constexpr int W = Shape::kPackQ < C::kPerLane ? Shape::kPackQ : C::kPerLane;
    static_assert(W == Shape::kPackQ, "a lane's part is whole packs");
    typename C::Part part = {};
#pragma unroll
    for (int i = 0; i < C::kPerLane; i += W) {
      const Index depth = s * C::kStep + begin + i;
      if (row < rows && (Shape::kDepth == Shape::kRealDepth || depth < Shape::kRealDepth)) {
        const auto pack = read(row, depth);
#pragma unroll
        for (int w = 0; w < W; ++w) part[i + w] = pack.data[w];
      }
    }
    return part;
  }
  KILN_DEVICE typename C::Rows queries_at(int t, int s) const {
    if constexpr (!kFromLds) {
      return queries[t][s];
    } else {
      typename C::Rows found;
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q) {
        const int row = wave_row + t * C::kQueries + C::query(lane, q);
        found.row[q] = part_at<Keys>(query_tile, row, s * C::kStep + begin);
      }
      return found;
    }
  }

  // The lane's part of a line of an operand. `base` and `line` have no bit in common, nor have `k`
  // and `begin`: what each adds to the place is xor'ed with the other's, one of them a constant.
  template <typename Layout>
  KILN_DEVICE typename C::Part fetch(const T* tile, int base, int k) const {
    return part_at<Layout>(tile, base + line, k + begin);
  }
  template <typename Layout>
  KILN_DEVICE static typename C::Part part_at(const T* tile, int n, int k) {
    constexpr int kChunk = kChunkBytes / sizeof(T);
    struct {
      Vec<T, kChunk> chunk[C::kPerLane / kChunk];
    } found;
#pragma unroll
    for (int i = 0; i < C::kPerLane / kChunk; ++i) {
      found.chunk[i] = mma::read<kChunk>(tile + Layout::place(n, k + i * kChunk));
    }
    return __builtin_bit_cast(typename C::Part, found);
  }

  // CDNA: asks the compiler for the operand of each of so many products two products ahead. By itself it
  // reads each just before it is needed, and what else there is to do stands in one heap.
  template <int Products>
  KILN_DEVICE static void interleave() {
#if defined(__AMDGCN__) && defined(__GFX9__)
    if constexpr (kTilesQ != 1 || sizeof(T) != 2) return;
    constexpr int kMatrix = 0x8, kLdsRead = 0x100;  // kinds of instructions, as LLVM numbers them
    __builtin_amdgcn_sched_group_barrier(kLdsRead, 2, 0);
#pragma unroll
    for (int i = 0; i < Products; ++i) {
      __builtin_amdgcn_sched_group_barrier(kMatrix, C::I::kRepeats, 0);
      __builtin_amdgcn_sched_group_barrier(kLdsRead, 1, 0);
    }
#endif
  }
  // RDNA has 256 registers: the compiler would fill them with operands read far ahead, and spill.
  KILN_DEVICE static void limit_reads() {
#if defined(__AMDGCN__) && !defined(__GFX9__)
    __builtin_amdgcn_sched_barrier(0);
#endif
  }
  // They are there: what waits for them must not do so in the loop, where other loads are on their way.
  KILN_DEVICE static void settle([[maybe_unused]] typename C::Part& part) {
#if defined(__AMDGCN__)
    auto words = __builtin_bit_cast(Vec<int, sizeof(part) / 4>, part);
    asm volatile("" : "+v"(words));
    part = __builtin_bit_cast(typename C::Part, words);
#endif
  }
  template <typename Op>
  KILN_DEVICE static Acc over_keys(Acc value, Op op) {
    if constexpr (!C::kTurned) return wave_reduce<C::kKeyLanes>(value, op);
#pragma unroll
    for (int mask = C::kKeyLanes / 2; mask > 0; mask /= 2) value = op(value, __shfl_xor(value, mask * C::kQueries));
    return value;
  }
  KILN_DEVICE void scale_output(const Acc (&keep)[kTilesQ][C::kOwnQueries]) {
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q)
#pragma unroll
        for (int own = 0; own < kTilesV * C::kOwnKeys; ++own) {
          put(output[t], own, q, at(output[t], own, q) * keep[t][q]);
        }
  }
  // The weights of a step along the keys.
  KILN_DEVICE void weigh(typename C::Rows (&weights)[kTilesQ], int s, Acc factor) {
#pragma unroll
    for (int t = 0; t < kTilesQ; ++t)
#pragma unroll
      for (int q = 0; q < C::kOwnQueries; ++q) {
        const Acc shift = running[t][q].shift(factor);
        Vec<T, kRun> run;
        Acc sum = 0;
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          const Acc score = at(scores[t], s * kRun + i, q);
          const Acc power = power_of_2(__builtin_elementwise_fma(score, factor, -shift));
          sum += power;
          run[i] = as_weight<T>(power);
        }
        weights[t].row[q] = C::operand(run, lane);
        running[t][q].total += sum;
      }
  }
};

}  // namespace kiln::attention

#endif
