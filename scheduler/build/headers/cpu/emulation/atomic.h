// Atomic operations: relaxed, seen by the whole device.
#pragma once

#include "launch.h"

namespace kiln_cpu {

template <typename T>
constexpr bool is_floating = T(1) / T(2) != T(0);

// Referring to it makes the launches of this library take their blocks in order.
template <typename T>
struct Ordered {
  static const bool set;
};
template <typename T>
const bool Ordered<T>::set = (blocks_in_order = true);

template <typename T, typename Change>
inline T change(T* at, Change what) {
  T old, wanted;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do {
    wanted = what(old);
  } while (!__atomic_compare_exchange(at, &old, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

}  // namespace kiln_cpu

template <typename T>
inline T atomicAdd(T* at, T value) {
  if constexpr (::kiln_cpu::is_floating<T>) (void)::kiln_cpu::Ordered<T>::set;
  return ::kiln_cpu::change(at, [=](T old) { return T(old + value); });
}
template <typename T>
inline T atomicMax(T* at, T value) {
  return ::kiln_cpu::change(at, [=](T old) { return old < value ? value : old; });
}
template <typename T>
inline T atomicMin(T* at, T value) {
  return ::kiln_cpu::change(at, [=](T old) { return value < old ? value : old; });
}
template <typename T>
inline T atomicExch(T* at, T value) {
  return ::kiln_cpu::change(at, [=](T) { return value; });
}
template <typename T>
inline T atomicCAS(T* at, T expected, T value) {
  __atomic_compare_exchange(at, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
