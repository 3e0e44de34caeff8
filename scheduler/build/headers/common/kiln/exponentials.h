// Sums of exponentials of distances from the greatest element, of elements that are read once.
#pragma once

#include <kiln/arithmetic.h>
#include <kiln/fast.h>
#include <kiln/math.h>
#include <kiln/wave.h>

namespace kiln {

// Of a set of elements the greatest that is no NaN, and the sum of the exponentials of their distances
// from it: the online softmax's pair (Milakov and Gimelshein, arXiv:1805.02867). A NaN is in the sum.
//
// Distances from an infinite greatest element are no numbers; there they are from 0. So the sum is 0
// where all elements are minus infinity, or there are none, and positive where one is infinite. Fast:
// by the exponential of kiln/fast.h.
template <typename T, bool Fast = false>
struct Exponentials {
  T highest, sum;

  KILN_DEVICE static T power(T x) {
    if constexpr (Fast) return fast::exp(x);
    else return exp(x);
  }
  KILN_DEVICE static T greater(T a, T b) {  // of a number and a NaN the number
    if constexpr (__is_same(T, float)) return __builtin_fmaxf(a, b);
    else return __builtin_fmax(a, b);
  }
  KILN_DEVICE static T shift(T top) { return top - top == 0 ? top : T(0); }

  KILN_DEVICE void add(T value) {
    const bool rises = value > highest;
    const T top = rises ? value : highest, low = rises ? highest : value;
    const T small = power(minus(low, shift(top)));
    sum = sum * (rises ? small : T(1)) + (rises ? T(1) : small);
    highest = top;
  }
  // Several at once: what is there is scaled once for all of them.
  template <int N>
  KILN_DEVICE void add(const T (&values)[N]) {
    T top = highest, more = 0;
#pragma unroll
    for (const T value : values) top = greater(top, value);
    const T from = shift(top);
#pragma unroll
    for (const T value : values) more += power(minus(value, from));
    *this = {top, sum * power(highest - from) + more};
  }

  // As torch's amax: a NaN anywhere gives NaN.
  KILN_DEVICE T top() const { return sum != sum ? sum : highest; }
  // The sum of the exponentials of the elements' distances from another point.
  KILN_DEVICE T about(T point) const { return sum * power(highest - point); }
};

template <typename T, bool Fast = false>
struct JoinExponentials {
  static constexpr Exponentials<T, Fast> zero = {lowest<T>(), T(0)};
  // One of both keeps its greatest element, so that one exponential is enough; a and b may change
  // places.
  KILN_DEVICE Exponentials<T, Fast> operator()(Exponentials<T, Fast> a, Exponentials<T, Fast> b) const {
    const bool rises = b.highest > a.highest;
    const T top = rises ? b.highest : a.highest, low = rises ? a.highest : b.highest;
    const T small = Exponentials<T, Fast>::power(low - Exponentials<T, Fast>::shift(top));
    return {top, (rises ? a.sum : b.sum) * small + (rises ? b.sum : a.sum)};
  }
};

// Every lane of a segment of `Width` lanes gets the combination of all of them: first the greatest, so
// that each lane scales its sum once.
template <int Width, typename T, bool Fast>
KILN_DEVICE Exponentials<T, Fast> segment_exponentials(Exponentials<T, Fast> value) {
  using Held = Exponentials<T, Fast>;
  const T top = wave_reduce<Width>(value.highest, [](T a, T b) { return Held::greater(a, b); });
  const T sum = value.sum * Held::power(value.highest - Held::shift(top));
  return {top, wave_reduce<Width>(sum, Sum<T>())};
}

// As that of kiln/reduce.h, with an exponential or two a thread instead of one for each wave.
template <int Lanes, int Threads, typename T, bool Fast>
KILN_DEVICE Exponentials<T, Fast> lanes_exchange(Exponentials<T, Fast> value, JoinExponentials<T, Fast>,
                                                 void* scratch) {
  constexpr int within = Lanes < wave_size ? Lanes : wave_size, waves = Lanes / within;
  static_assert(Threads % Lanes == 0 && waves <= wave_size, "whole runs, whose waves one wave has");
  value = segment_exponentials<within>(value);
  if constexpr (waves > 1) {
    auto* const parts = static_cast<Exponentials<T, Fast>*>(scratch);
    const int wave = threadIdx.x / wave_size, first = wave / waves * waves;
    if (threadIdx.x % wave_size == 0) parts[wave] = value;
    __syncthreads();
    value = segment_exponentials<waves>(parts[first + threadIdx.x % waves]);
  }
  return value;
}

}  // namespace kiln
