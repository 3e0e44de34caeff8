// A wave's part of attention by plain FMA, for element types that the target has no matrix
// instruction for: operands and weights in LDS. The interface is that of `Cores`.
#pragma once

#include <kiln/attention_layout.h>
#include <kiln/attention_softmax.h>

namespace kiln::attention {

// A wave's rectangle M x N of sums: lanes in a grid, each with strided rows and with runs of kRun
// neighbouring columns, as many as a lane of `Cores` has; a row of lanes has Across columns at once.
template <typename T, int M, int N, int Across>
struct PlainSums {
  using Acc = typename mma::Accumulate<T>::type;
  static constexpr int kRun = sizeof(T) == 2 ? 8 : 4, kStep = 4;
  static constexpr int kLaneColumns = Across / kRun, kLaneRows = wave_size / kLaneColumns;
  static constexpr int kRows = M / kLaneRows, kColumns = N / kLaneColumns;
  static_assert(M % kLaneRows == 0 && N % (kLaneColumns * kRun) == 0, "whole runs");
  Acc d[kRows][kColumns];

  KILN_DEVICE static int row(int lane, int i) { return lane / kLaneColumns + i * kLaneRows; }
  KILN_DEVICE static int column(int lane, int j) {
    return j / kRun * (kRun * kLaneColumns) + lane % kLaneColumns * kRun + j % kRun;
  }
  KILN_DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) d[i][j] = 0;
  }
  // Adds the product of `length` elements of the lines of `a` (rows) and `b` (columns).
  KILN_DEVICE void multiply(const T* a, int line_a, const T* b, int line_b, int length, int lane) {
#pragma unroll 1
    for (int k = 0; k < length; k += kStep) {
      Acc x[kRows][kStep], y[kStep];
#pragma unroll
      for (int i = 0; i < kRows; ++i) fetch(x[i], a + row(lane, i) * line_a + k);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        fetch(y, b + column(lane, j) * line_b + k);
#pragma unroll
        for (int s = 0; s < kStep; ++s)
#pragma unroll
          for (int i = 0; i < kRows; ++i) d[i][j] = __builtin_elementwise_fma(x[i][s], y[s], d[i][j]);
      }
    }
  }

 private:
  KILN_DEVICE static void fetch(Acc (&to)[kStep], const T* from) {
    constexpr int kWide = sizeof(T) == 8 ? 2 : kStep;
#pragma unroll
    for (int k = 0; k < kStep; k += kWide) {
      const auto part = mma::read<kWide>(from + k);
#pragma unroll
      for (int i = 0; i < kWide; ++i) to[k + i] = static_cast<Acc>(part[i]);
    }
  }
};

template <typename Shape>
struct Plain {
  using T = typename Shape::T;
  using Acc = typename mma::Accumulate<T>::type;
  static constexpr int kWaveM = Shape::kWaveM, kBlockM = Shape::kBlockM, kBlockN = Shape::kBlockN;
  static constexpr int kAcross = kBlockN < 32 ? kBlockN : 32;
  using Scores = PlainSums<T, kWaveM, kBlockN, kAcross>;
  using Output = PlainSums<T, kWaveM, Shape::kValueDepth, kAcross>;
  using Keys = Padded<T, Shape::kDepth>;
  using Values = Padded<T, kBlockN>;
  static constexpr int kRun = Scores::kRun, kRowLanes = Scores::kLaneColumns;
  static constexpr int kKeysSize = kBlockN * Keys::kLine, kValuesSize = Shape::kValueDepth * Values::kLine;
  static constexpr int kTiles = of_both(kBlockN, kKeysSize, kValuesSize);
  static constexpr int kShared = kTiles + kBlockM * Keys::kLine + kBlockM * Values::kLine;

  int lane, wave_row;
  const T* query_tile;
  T* weight_tile;
  Scores scores;
  Output output;
  Running<Acc> running[Scores::kRows];

  KILN_DEVICE Plain(int lane_, int wave_row_) : lane(lane_), wave_row(wave_row_) { output.clear(); }

  template <typename Index, typename Read>
  KILN_DEVICE void take_queries(T* lds, Index first_row, Index rows, Read read) {
    T* const tile = lds + kTiles;
    using All = Lines<T, Keys, kBlockM, Shape::kDepth, Shape::kRealDepth, Shape::kPackQ, Shape::kThreads>;
    All::move(tile, first_row, rows, read);
    query_tile = tile + wave_row * Keys::kLine;
    weight_tile = tile + kBlockM * Keys::kLine + wave_row * Values::kLine;
  }
  KILN_DEVICE void score(const T* key_tile) {
    scores.clear();
    scores.multiply(query_tile, Keys::kLine, key_tile, Keys::kLine, Shape::kDepth, lane);
  }
  template <typename Change>
  KILN_DEVICE void adjust(Change change) {
#pragma unroll
    for (int i = 0; i < Scores::kRows; ++i)
#pragma unroll
      for (int j = 0; j < Scores::kColumns; ++j) {
        const int row = wave_row + Scores::row(lane, i);
        scores.d[i][j] = change(row, Scores::column(lane, j), scores.d[i][j]);
      }
  }
  // As of `Cores`.
  template <typename M, int W>
  struct Beside {
    static_assert(kRun % W == 0, "a lane has runs of whole packs");
    Pack<M, W> pack[Scores::kRows][Scores::kColumns / W];
  };
  template <typename M, int W, typename Read>
  KILN_DEVICE void look(Beside<M, W>& beside, Read read) const {
#pragma unroll
    for (int i = 0; i < Scores::kRows; ++i)
#pragma unroll
      for (int j = 0; j < Scores::kColumns; j += W) {
        beside.pack[i][j / W] = read(wave_row + Scores::row(lane, i), Scores::column(lane, j));
      }
  }
  template <typename M, int W, typename Change>
  KILN_DEVICE void adjust(const Beside<M, W>& beside, Change change) {
#pragma unroll
    for (int i = 0; i < Scores::kRows; ++i)
#pragma unroll
      for (int j = 0; j < Scores::kColumns; ++j) {
        const int row = wave_row + Scores::row(lane, i);
        const M other = beside.pack[i][j / W].data[j % W];
        scores.d[i][j] = change(row, Scores::column(lane, j), other, scores.d[i][j]);
      }
  }
  KILN_DEVICE void raise(Acc factor) {
#pragma unroll
    for (int i = 0; i < Scores::kRows; ++i) {
      Acc top = scores.d[i][0];
#pragma unroll
      for (int j = 1; j < Scores::kColumns; ++j) top = greater(top, scores.d[i][j]);
      top = over_row(top, [](Acc a, Acc b) { return greater(a, b); });
      const Acc keep = running[i].raise(top, factor), shift = running[i].shift(factor);
#pragma unroll
      for (int j = 0; j < Output::kColumns; ++j) output.d[i][j] *= keep;
#pragma unroll
      for (int j = 0; j < Scores::kColumns; ++j) {
        const Acc power = power_of_2(__builtin_elementwise_fma(scores.d[i][j], factor, -shift));
        running[i].total += power;
        weight_tile[Scores::row(lane, i) * Values::kLine + Scores::column(lane, j)] = as_weight<T>(power);
      }
    }
    barrier();  // other lanes read them
  }
  KILN_DEVICE void accumulate(const T* value_tile, Acc) {
    output.multiply(weight_tile, Values::kLine, value_tile, Values::kLine, kBlockN, lane);
  }
  template <int W, typename Each>
  KILN_DEVICE void finish(Each each) {
    static_assert(kRun % W == 0, "a lane has runs of whole packs");
#pragma unroll
    for (int i = 0; i < Output::kRows; ++i) {
      const Acc total = over_row(running[i].total, [](Acc a, Acc b) { return a + b; });
#pragma unroll
      for (int j = 0; j < Output::kColumns; j += W) {
        Pack<Acc, W> values;
#pragma unroll
        for (int w = 0; w < W; ++w) values[w] = output.d[i][j + w];
        const int row = wave_row + Output::row(lane, i);
        each(row, Output::column(lane, j), values, running[i].highest, total);
      }
    }
  }

 private:
  template <typename Op>
  KILN_DEVICE static Acc over_row(Acc value, Op op) {
    return wave_reduce<kRowLanes>(value, op);
  }
};

}  // namespace kiln::attention
