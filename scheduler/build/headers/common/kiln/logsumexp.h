// The running logarithm of a sum of powers.
#pragma once

#include <kiln/math.h>
#include <kiln/wave.h>

namespace kiln {

// log(exp(a) + exp(b)), from the greater one. Equal infinities are what they are, and a NaN stays.
template <typename T>
struct LogSumExp {
  static constexpr T zero = lowest<T>();
  KILN_DEVICE T operator()(T a, T b) const {
    if (a == b && a - b != 0) return a;
    const T high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
    return high + log1p(exp(low - high));
  }
};

}  // namespace kiln
