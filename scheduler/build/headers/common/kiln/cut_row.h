// Rows that begin anywhere, cut where packs of whole steps are aligned in memory.
#pragma once

#include <kiln/index.h>

namespace kiln {

// Steps [begin, end) of a row: packs cover [first, last); the `edges` steps before and behind them
// are taken one by one.
template <typename I>
struct CutRow {
  I begin, first, last, edges;

  // Which step the edge of that number is.
  KILN_INLINE I edge(I number) const {
    const I step = begin + number;
    return step < first ? step : step - first + last;
  }
};

// `row` is where in memory step 0 is, in elements from an address that is a multiple of `Width` of
// them, a power of two.
template <int Width, typename I>
KILN_INLINE CutRow<I> cut_row(I row, I begin, I end) {
  static_assert((Width & (Width - 1)) == 0, "a power of two");
  if (end <= begin) return {begin, begin, begin, 0};
  const I aligned = begin + (-(row + begin) & (Width - 1)), first = aligned < end ? aligned : end;
  const I last = first + ((end - first) & -Width);
  return {begin, first, last, (first - begin) + (end - last)};
}

// The most edges of one thread, of `Lanes` that share a row.
template <int Width, int Lanes>
constexpr int most_edges = (2 * (Width - 1) + Lanes - 1) / Lanes;

}  // namespace kiln
