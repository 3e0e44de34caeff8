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
template <typename T, typename I = int64_t>
struct Found {
  T value;
  I index;
};

// As torch's argmax and argmin: a NaN wins over every number, and the first of equals wins.
template <typename T, bool Greatest, typename I = int64_t>
struct ArgExtreme {
  static constexpr Found<T, I> zero = {Greatest ? lowest<T>() : highest<T>(), highest<I>()};
  KILN_DEVICE Found<T, I> operator()(Found<T, I> a, Found<T, I> b) const {
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool better = Greatest ? a.value > b.value : a.value < b.value;
    const bool equal = a.value == b.value || (nan_a && nan_b);
    const bool first = nan_a != nan_b ? nan_a : equal ? a.index < b.index : better;
    return first ? a : b;
  }
  // The same where `b` stands behind all of `a`. What is only as good as `zero` is not taken:
  // `begun` makes up for that.
  KILN_DEVICE static Found<T, I> next(Found<T, I> a, Found<T, I> b) {
    const bool keeps = Greatest ? b.value <= a.value : b.value >= a.value;
    return keeps || a.value != a.value ? a : b;
  }
  // What `next` made of elements from `first` on, if there were any.
  KILN_DEVICE static Found<T, I> begun(Found<T, I> a, I first, bool any) {
    return any && a.index == highest<I>() ? Found<T, I>{a.value, first} : a;
  }
};
template <typename T, typename I = int64_t>
using ArgMax = ArgExtreme<T, true, I>;
template <typename T, typename I = int64_t>
using ArgMin = ArgExtreme<T, false, I>;

// Bytes of LDS for `lanes_reduce` over values of `size` bytes; the waves are taken as 32 lanes, so
// that it is the same on every target.
constexpr int scratch_bytes(int lanes, int threads, int size) {
  return lanes > 32 ? threads / 32 * size : 16;
}

// Every thread gets the combination over its run of `Lanes` threads (a power of two) of a block of
// `Threads`. All threads of the block call it. `scratch` may be used again behind the next barrier.
template <int Lanes, int Threads, typename T, typename Op>
KILN_DEVICE T lanes_exchange(T value, Op op, void* scratch) {
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
    return value;
  }
}

// The same, after which `scratch` may be used again at once.
template <int Lanes, int Threads, typename T, typename Op>
KILN_DEVICE T lanes_reduce(T value, Op op, void* scratch) {
  value = lanes_exchange<Lanes, Threads>(value, op, scratch);
  if constexpr (Lanes > wave_size) __syncthreads();
  return value;
}

// Every thread gets, of each of its N values, the combination over the `Lanes` threads of the block
// that stand one behind the other: those whose numbers leave the same remainder by Threads / Lanes.
// All threads of the block call it. `scratch`, for Threads * N values, may be used again at once.
template <int Lanes, int Threads, int N, typename T, typename Op>
KILN_DEVICE void columns_reduce(T (&values)[N], Op op, void* scratch) {
  if constexpr (Lanes > 1) {
    constexpr int across = Threads / Lanes;
    T* parts = static_cast<T*>(scratch);
#pragma unroll
    for (int j = 0; j < N; ++j) parts[j * Threads + threadIdx.x] = values[j];
    __syncthreads();
    // Few are combined by every thread for itself; of many, one half with the other.
    constexpr int few = Lanes < 16 ? Lanes : 8;
#pragma unroll
    for (int half = Lanes / 2; half >= few; half /= 2) {
      if (threadIdx.x < half * across) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          T* const column = parts + j * Threads + threadIdx.x;
          column[0] = op(column[0], column[half * across]);
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const T* const column = parts + j * Threads + threadIdx.x % across;
      T value = column[0];
#pragma unroll
      for (int lane = 1; lane < few; ++lane) value = op(value, column[lane * across]);
      values[j] = value;
    }
    __syncthreads();
  }
}

// Where the share number `part` of a row of `steps` begins, which `parts` blocks go through: whole
// multiples of `unit`, as equal as they can be.
template <typename I>
KILN_DEVICE I share_begin(I steps, int part, int parts, int unit) {
  const I units = (steps + unit - 1) / unit;
  const int64_t first = int64_t((units + parts - 1) / parts) * unit * part;
  return first < steps ? static_cast<I>(first) : steps;
}

// What comes before each thread, in each of N runs of the row that its lanes have one after another:
// `carry`, combined with what the runs before have, and the threads of its run before it. `carry`
// becomes the combination with all of them. All threads of the block call it; `scratch`, for N times
// the bytes of `lanes_reduce`, may be used again at once.
template <int Lanes, int Threads, int N, typename T, typename Op>
KILN_DEVICE void lanes_scan(T (&values)[N], T& carry, Op op, void* scratch) {
  constexpr int within = Lanes < wave_size ? Lanes : wave_size, waves = Lanes / within;
  constexpr int runs = Threads / within;
  const int lane = threadIdx.x % within;
  T* parts = static_cast<T*>(scratch);
  const int wave = threadIdx.x / within, first = wave / waves * waves;
  T earlier[N], total[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    T value = values[k];
#pragma unroll
    for (int delta = 1; delta < within; delta *= 2) {
      const T other = __shfl_up(value, delta, within);
      if (lane >= delta) value = op(other, value);
    }
    if constexpr (within > 1) earlier[k] = __shfl_up(value, 1, within);
    if constexpr (within > 1 && waves == 1) total[k] = __shfl(value, within - 1, within);
    else total[k] = value;
    if constexpr (waves > 1) {
      if (lane == within - 1) parts[k * runs + wave] = value;
    }
  }
  if constexpr (waves > 1) __syncthreads();
#pragma unroll
  for (int k = 0; k < N; ++k) {
    T before = carry;
    if constexpr (waves > 1) {
#pragma unroll
      for (int i = 0; i < waves; ++i) {
        if (first + i == wave) before = carry;
        carry = op(carry, parts[k * runs + first + i]);
      }
    } else {
      carry = op(carry, total[k]);
    }
    if constexpr (within > 1) values[k] = lane == 0 ? before : op(before, earlier[k]);
    else values[k] = before;
  }
  if constexpr (waves > 1) __syncthreads();
}

}  // namespace kiln
