// Reductions over the threads that share a row, whether they are part of a wave or several waves.
#pragma once

#include <kiln/wave.h>

namespace kiln {

template <typename T>
struct Any {
  static constexpr T zero = T(0);
  KILN_DEVICE T operator()(T a, T b) const { return a || b; }
};

template <typename T>
struct All {
  static constexpr T zero = T(1);
  KILN_DEVICE T operator()(T a, T b) const { return a && b; }
};

// A value and where it stands. No value has been seen while the index is the largest there is.
template <typename T>
struct Found {
  T value;
  int64_t index;
};

// As torch's argmax and argmin: a NaN wins over every number, and the first of equals wins.
template <typename T, bool Greatest>
struct ArgExtreme {
  static constexpr Found<T> zero = {Greatest ? lowest<T>() : highest<T>(), INT64_MAX};
  KILN_DEVICE Found<T> operator()(Found<T> a, Found<T> b) const {
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool better = Greatest ? a.value > b.value : a.value < b.value;
    const bool equal = a.value == b.value || (nan_a && nan_b);
    const bool first = nan_a != nan_b ? nan_a : equal ? a.index < b.index : better;
    return first ? a : b;
  }
};
template <typename T>
using ArgMax = ArgExtreme<T, true>;
template <typename T>
using ArgMin = ArgExtreme<T, false>;

// Bytes of LDS for `lanes_reduce` over values of `size` bytes; the waves are taken as 32 lanes, so
// that it is the same on every target.
constexpr int scratch_bytes(int lanes, int threads, int size) {
  return lanes > 32 ? threads / 32 * size : 16;
}

// Every thread gets the combination over its run of `Lanes` threads (a power of two) of a block of
// `Threads`. All threads of the block call it. `scratch` may be used again at once.
template <int Lanes, int Threads, typename T, typename Op>
KILN_DEVICE T lanes_reduce(T value, Op op, void* scratch) {
  if constexpr (Lanes <= wave_size) {
    return wave_reduce<Lanes>(value, op);
  } else {
    static_assert(Threads % Lanes == 0, "whole runs");
    constexpr int waves = Lanes / wave_size;
    T* parts = static_cast<T*>(scratch);
    const int wave = threadIdx.x / wave_size, first = wave / waves * waves;
    value = wave_reduce(value, op);
    if (threadIdx.x % wave_size == 0) parts[wave] = value;
    __syncthreads();
    value = parts[first];
#pragma unroll
    for (int i = 1; i < waves; ++i) value = op(value, parts[first + i]);
    __syncthreads();
    return value;
  }
}

// The running combination: each thread gets that of its run's threads up to itself.
template <int Lanes, int Threads, typename T, typename Op>
KILN_DEVICE T lanes_scan(T value, Op op, void* scratch) {
  constexpr int within = Lanes < wave_size ? Lanes : wave_size;
  const int lane = threadIdx.x % within;
#pragma unroll
  for (int delta = 1; delta < within; delta *= 2) {
    const T before = __shfl_up(value, delta, within);
    if (lane >= delta) value = op(before, value);
  }
  if constexpr (Lanes > wave_size) {
    constexpr int waves = Lanes / wave_size;
    T* parts = static_cast<T*>(scratch);
    const int wave = threadIdx.x / wave_size, first = wave / waves * waves;
    if (lane == wave_size - 1) parts[wave] = value;
    __syncthreads();
    T before = Op::zero;
    for (int i = first; i < wave; ++i) before = op(before, parts[i]);
    __syncthreads();
    if (wave > first) value = op(before, value);
  }
  return value;
}

// The value of the last thread of each run.
template <int Lanes, int Threads, typename T>
KILN_DEVICE T lanes_last(T value, void* scratch) {
  if constexpr (Lanes == 1) {
    return value;
  } else if constexpr (Lanes <= wave_size) {
    return __shfl(value, Lanes - 1, Lanes);
  } else {
    T* parts = static_cast<T*>(scratch);
    const int run = threadIdx.x / Lanes;
    if (threadIdx.x % Lanes == Lanes - 1) parts[run] = value;
    __syncthreads();
    value = parts[run];
    __syncthreads();
    return value;
  }
}

}  // namespace kiln
