// The running maximum and sum of a row's exponentials, in units of log 2, for attention.
//
// Weights are 2^(score * factor - shift). The shift follows the row's maximum only where that is
// more than 2^kSlack above it: a shift that is a little too low is as good (weights stay below
// 2^kSlack, sums far from overflow), and the output is rarely multiplied again.
#pragma once

#include <kiln/hardware.h>
#include <kiln/mma.h>
#include <kiln/vector.h>
#include <kiln/wave.h>

namespace kiln::attention {

KILN_DEVICE float power_of_2(float x) { return hardware_exp2(x); }
KILN_DEVICE double power_of_2(double x) { return exp2(x); }

// The greater one; of a number and a NaN the number. A NaN reaches the sum by its weight.
KILN_DEVICE float greater(float a, float b) { return __builtin_fmaxf(a, b); }
KILN_DEVICE double greater(double a, double b) { return __builtin_fmax(a, b); }

// A weight as an operand of the second product, to nearest even. Its NaN may be lost: the sum has it.
template <typename T, typename Acc>
KILN_DEVICE T as_weight(Acc value) {
  if constexpr (!__is_same(T, __bf16)) {
    return static_cast<T>(value);
  } else {
#if defined(__gfx950__) && defined(__AMDGCN__) || defined(__CUDA__)
    return static_cast<__bf16>(value);
#else
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    return __builtin_bit_cast(__bf16, uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
#endif
  }
}

// Of one row: what all lanes that hold a part of it agree on, and this lane's own part of the sum.
template <typename Acc>
struct Running {
  static constexpr Acc kSlack = 8;
  Acc highest = lowest<Acc>();  // what the shift follows
  Acc total = 0;

  // With the greatest score of a further tile; gives what earlier weights must be multiplied by.
  KILN_DEVICE Acc raise(Acc top, Acc factor) {
    const bool rises = top > highest + kSlack / factor;
    const Acc keep = rises ? power_of_2((highest - top) * factor) : Acc(1);
    highest = rises ? top : highest;
    total *= keep;
    return keep;
  }
  // While every score is minus infinity there is nothing to shift by.
  KILN_DEVICE Acc shift(Acc factor) const {
    return highest == lowest<Acc>() ? Acc(0) : highest * factor;
  }
};

// Neighbouring lanes that share a row of `combine`: nothing else hides how long its loads take.
template <int Splits>
constexpr int kCombineLanes = Splits < 8 ? Splits : 8;

// One row from what Splits blocks found of it: `first` has sums of weighted values, and last what they
// are shifted by and the total of the weights; those of the next block are `step` elements further.
// Gives the total, and the sums from `depth` on, to each of the lanes that share them.
template <int Splits, typename Acc, int W>
KILN_DEVICE Acc combine(const Acc* first, int64_t step, int length, int depth, Acc factor, Pack<Acc, W>& sums) {
  constexpr int kLanes = kCombineLanes<Splits>, kOwn = Splits / kLanes;
  constexpr int kWide = W * int(sizeof(Acc)) <= 16 ? W : 16 / int(sizeof(Acc));  // that are read at once
  static_assert(kLanes * kOwn == Splits, "lanes have equal shares");
  const auto add = [](Acc a, Acc b) { return a + b; };
  const Acc* const own = first + threadIdx.x % kLanes * step;
  // All of them on their way before the first is waited for.
  Acc highest[kOwn], weight[kOwn];
  Pack<Acc, W> values[kOwn];
#pragma unroll
  for (int s = 0; s < kOwn; ++s) {
    const Acc* const part = own + s * kLanes * step;
    highest[s] = part[length - 2];
    weight[s] = part[length - 1];
#pragma unroll
    for (int w = 0; w < W; w += kWide) {
      const auto wide = load_pack<kWide>(part + depth + w);
#pragma unroll
      for (int i = 0; i < kWide; ++i) values[s][w + i] = wide.data[i];
    }
  }
  Acc top = lowest<Acc>(), total = 0;
#pragma unroll
  for (int s = 0; s < kOwn; ++s) top = greater(top, highest[s]);
  top = wave_reduce<kLanes>(top, [](Acc a, Acc b) { return greater(a, b); });
  sums = {};
#pragma unroll
  for (int s = 0; s < kOwn; ++s) {
    const Acc keep = highest[s] == top ? Acc(1) : power_of_2((highest[s] - top) * factor);
    total += weight[s] * keep;
#pragma unroll
    for (int w = 0; w < W; ++w) sums[w] += values[s][w] * keep;
  }
#pragma unroll
  for (int w = 0; w < W; ++w) sums[w] = wave_reduce<kLanes>(sums[w], add);
  return wave_reduce<kLanes>(total, add);
}

}  // namespace kiln::attention
