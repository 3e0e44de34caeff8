// Scores with a soft cap: cap * tanh(score / cap), as multiples of the cap.
#pragma once

#include <kiln/fast.h>
#include <kiln/math.h>
#include <kiln/types.h>

namespace kiln::attention {

// tanh(score * slope).
template <typename T, typename Acc>
KILN_DEVICE Acc in_caps(Acc score, Acc slope) {
  if constexpr (sizeof(T) == 2) return fast::tanh(score * slope);
  return tanh(score * slope);
}

// 1 + tanh(score * slope), within 2^-21: a softmax does not see what is added to all scores of a row.
// A power of 2 and a reciprocal for each score.
KILN_DEVICE float above_lowest(float score, float slope) {
  return fast::detail::logistic(score * (-2.f * fast::detail::kLog2E * slope));
}

}  // namespace kiln::attention
