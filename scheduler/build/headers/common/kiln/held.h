// Floats of 8 bits in vectors, which hold no classes: by their codes.
#pragma once

#include <stdint.h>

namespace kiln {

template <typename T, bool = __is_class(T)>
struct HeldAs {
  using type = T;
};
template <typename T>
struct HeldAs<T, true> {
  using type = uint8_t;
};
template <typename T>
using Held = typename HeldAs<T>::type;

}  // namespace kiln
