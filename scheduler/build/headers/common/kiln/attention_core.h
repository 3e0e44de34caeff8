// One matrix instruction as attention uses it: which queries and keys a lane has.
//
// Where an instruction's result is square the first product is K Q^T: a lane then has scores of one
// query, along keys, as the second product V^T P^T wants its operand. NVIDIA's has Q K^T and P V with
// the same effect. A product sums over its k in any order if both operands agree on it: which key a
// row of the first product stands for is chosen so that a lane's scores are of runs of kRun
// neighbouring keys, just those that it then multiplies (and a lane's results of neighbouring depths).
#pragma once

#include <kiln/mma.h>
#include <kiln/wave.h>

#if defined(KILN_MATRIX_INSTRUCTIONS)

namespace kiln::attention {

template <typename T, int Size>
struct Core {
  using I = typename instruction::Select<T, Size>::type;
  using Acc = typename I::Accumulator;
  using D = typename I::D;
  static constexpr bool kTurned = I::kM == I::kN;
  static constexpr int kQueries = kTurned ? I::kN : I::kM, kKeys = kTurned ? I::kM : I::kN;
  static constexpr int kOwnQueries = kTurned ? 1 : I::kValues / I::kColumns;
  static constexpr int kOwnKeys = I::kValues / kOwnQueries;
  static constexpr int kKeyLanes = I::kLanes * kOwnQueries / kQueries;  // that share a query
  static constexpr int kStep = I::kRepeats * I::kK;  // of k that a lane's reads of an operand serve
  static constexpr int kRun = kStep / kKeyLanes;
  static constexpr int kPerLane = I::kRepeats * I::kValuesB;
  static_assert(kTurned || I::kRowsA == kOwnQueries, "a lane has rows of A and of D alike");

  using Part = Vec<T, kPerLane>;  // of a row of keys or of turned values
  struct Rows {                   // of queries, or of their weights
    Part row[kOwnQueries];
  };

  KILN_DEVICE static int key_lane(int lane) { return kTurned ? lane / kQueries : lane % kKeyLanes; }
  KILN_DEVICE static int query(int lane, int q) {
    return kTurned ? lane % kQueries : lane / kKeyLanes + q * (kQueries / kOwnQueries);
  }
  // Where along k a lane's part of an operand's row begins.
  KILN_DEVICE static int begin(int lane) {
    return kStep == kPerLane ? 0 : key_lane(lane) * kPerLane;
  }
  // The key of a lane's score number `own` (counted through the tiles of the first product), beside
  // what its lane adds.
  static constexpr int key(int own) { return own / kRun * kStep + own % kRun; }
  KILN_DEVICE static int key_of_lane(int lane) { return key_lane(lane) * kRun; }
  // The line that the lane reads for row or column m of the instruction's operand.
  KILN_DEVICE static int line(int lane) {
    const int m = kTurned ? I::a_row(lane, 0) : I::b_column(lane, 0);
    const int holder = m / in_a_row() % kKeyLanes;
    const int own = m / (in_a_row() * kKeyLanes) * in_a_row() + m % in_a_row();
    return key(own) + holder * kRun;
  }

  KILN_DEVICE static void multiply(Part part, const Rows& rows, D& sum) {
#pragma unroll
    for (int r = 0; r < I::kRepeats; ++r) {
      if constexpr (kTurned) {
        sum = mma::multiply_add(I{}, piece<typename I::A>(part, r), piece<typename I::B>(rows.row[0], r), sum);
      } else {
        sum = mma::multiply_add(I{}, of_rows(rows, r), piece<typename I::B>(part, r), sum);
      }
    }
  }

  // A lane's weights of kRun keys for each of its queries as an operand.
  KILN_DEVICE static Part operand(Vec<T, kRun> own, [[maybe_unused]] int lane) {
    if constexpr (kRun == kPerLane) {
      return own;
    } else {  // gfx11: both halves of the wave hold all of k
      static_assert(kPerLane == 2 * kRun && kKeyLanes == 2, "the other half has the rest");
      const auto mine = __builtin_bit_cast(Words, own);
      Words other;
#pragma unroll
      for (int i = 0; i < kWords; ++i) other.word[i] = of_other_half(mine.word[i]);
      struct {
        Words half[2];
      } both;
      const bool upper = lane >= kQueries;
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        both.half[0].word[i] = upper ? other.word[i] : mine.word[i];
        both.half[1].word[i] = upper ? mine.word[i] : other.word[i];
      }
      return __builtin_bit_cast(Part, both);
    }
  }

 private:
  static constexpr int kWords = kRun * sizeof(T) / 4;
  struct Words {
    int word[kWords];
  };
  KILN_DEVICE static int of_other_half(int value) {
#if defined(__AMDGCN__) && !defined(__GFX9__)
    return __builtin_amdgcn_permlanex16(value, value, 0x76543210, 0xfedcba98, true, false);
#else
    return __shfl_xor(value, 16);
#endif
  }

  // Rows (columns where not turned) of D that lie in a lane's neighbouring values.
  static constexpr int in_a_row() {
    if (!kTurned) return I::kColumns;
    int count = 1;
    while (count < I::kValues && I::d_row(0, count) == count) ++count;
    return count;
  }
  template <typename Operand>
  KILN_DEVICE static Operand piece(Part part, int r) {
    struct Pieces {
      Operand piece[I::kRepeats];
    };
    return __builtin_bit_cast(Pieces, part).piece[r];
  }
  // NVIDIA's A: two rows, of each the values of a run in the order of k.
  KILN_DEVICE static typename I::A of_rows(const Rows& rows, int r) {
    typename I::A a;
#pragma unroll
    for (int v = 0; v < I::kValuesA; ++v) {
      a[v] = rows.row[v / 2 % 2][r * (kPerLane / I::kRepeats) + v % 2 + v / 4 * 2];
    }
    return a;
  }
};

}  // namespace kiln::attention

#endif
