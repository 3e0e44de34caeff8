// Attention's tiles: what a block of a `Shape` (constants of the kernel's text) does with them.
#pragma once

#include <kiln/attention_cores.h>
#include <kiln/attention_plain.h>

namespace kiln::attention {

template <typename Shape, bool = instruction::Select<typename Shape::T, 16>::kAvailable>
struct Choose {
  using type = Plain<Shape>;
};
#if defined(KILN_MATRIX_INSTRUCTIONS)
template <typename Shape>
struct Choose<Shape, true> {
  using type = Cores<Shape>;
};
#endif
// On matrix cores where the target has them for the element type.
template <typename Shape>
using Wave = typename Choose<Shape>::type;

template <typename Index>
KILN_DEVICE Index least(Index a, Index b) {
  return a < b ? a : b;
}
template <typename Index>
KILN_DEVICE Index greatest(Index a, Index b) {
  return a > b ? a : b;
}

// How the threads move tiles of keys and of values, which lie in LDS one behind the other, or where
// they are `one_tile` in the same place.
template <typename Shape>
using KeyMover = Lines<typename Shape::T, typename Wave<Shape>::Keys, Shape::kBlockN, Shape::kDepth,
                       Shape::kRealDepth, Shape::kPackK, Shape::kThreads>;
template <typename Shape>
using ValueMover = TurnedLines<typename Shape::T, typename Wave<Shape>::Values, Shape::kBlockN, Shape::kValueDepth,
                               Shape::kRealValueDepth, Shape::kPackV, Shape::kThreads>;
template <typename Shape>
constexpr int keys_size() {
  return one_tile(Shape::kBlockN) ? 0 : Shape::kBlockN * Wave<Shape>::Keys::kLine;
}

}  // namespace kiln::attention
