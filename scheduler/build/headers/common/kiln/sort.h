// Stable merges of rows: keys, and beside each the place where it was.
//
// Runs are merged along their merge path: whoever writes the elements from some place of the result
// on finds by bisection how many of them come from each run (Odeh, Green, Mwassi, Shmueli and Birk,
// Merge Path - Parallel Merging Made Simple, 2012).
#pragma once

#include <kiln/wave.h>

namespace kiln {

// Whether `a` must come before `b`. NaN is the greatest of all, and equal to itself.
template <typename K, bool Descending>
struct Before {
  KILN_DEVICE bool operator()(K a, K b) const {
    if constexpr (Descending) return a > b || (a != a && b == b);
    else return a < b || (b != b && a == a);
  }
};

// Two neighbouring runs: the first from `begin`, the second from `middle` to before `end`.
template <typename I>
struct Runs {
  I begin, middle, end;

  // Those of `width` elements whose result holds the element at `at` of a row of `count`.
  KILN_DEVICE static Runs around(I at, I width, I count) {
    const I first = at / (2 * width) * (2 * width);
    const auto least = [&](I to) { return to < count ? to : count; };
    return {least(first), least(first + width), least(first + 2 * width)};
  }
};

// How many of the first `taken` elements of the merged runs are of the first run.
template <typename B, typename K, typename I>
KILN_DEVICE I taken_of_first(const K* keys, Runs<I> runs, I taken) {
  const I first = runs.middle - runs.begin, second = runs.end - runs.middle;
  I low = taken > second ? taken - second : 0, high = taken < first ? taken : first;
  while (low < high) {
    const I half = low + (high - low) / 2;
    // Of equals the first run's come first.
    if (B()(keys[runs.middle + taken - 1 - half], keys[runs.begin + half])) high = half;
    else low = half + 1;
  }
  return low;
}

// `Items` neighbouring elements of the merged runs, from the one after the first `skipped` on.
template <typename B, int Items, typename K, typename I, typename R>
KILN_DEVICE void merge_runs(const K* keys, const I* places, Runs<R> runs, R skipped,
                            K (&key)[Items], I (&place)[Items]) {
  if (skipped >= runs.end - runs.begin) return;
  R a = runs.begin + taken_of_first<B>(keys, runs, skipped);
  R b = runs.middle + skipped - (a - runs.begin);
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const bool left_a = a < runs.middle, left_b = b < runs.end;
    if (left_a || left_b) {
      const bool first = !left_b || (left_a && !B()(keys[b], keys[a]));
      const R from = first ? a++ : b++;
      key[i] = keys[from];
      place[i] = places[from];
    }
  }
}

// Sorts the first `count` elements of a row in LDS, which `Lanes` threads share (a power of two)
// and which has room for `Items` elements of each; `lane` is the thread's number among them. All
// threads of the block call it with the same count, and the row is there when it returns.
template <typename B, int Items, int Lanes, typename K, typename I>
KILN_DEVICE void sort_row(K* keys, I* places, int lane, int count) {
  K key[Items];
  I place[Items];
  const int first = lane * Items;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    if (first + i < count) {
      key[i] = keys[first + i];
      place[i] = places[first + i];
    }
  }
  // A thread's own: neighbours that stand the wrong way round are exchanged.
#pragma unroll
  for (int pass = 0; pass < Items; ++pass) {
#pragma unroll
    for (int i = pass % 2; i + 1 < Items; i += 2) {
      if (first + i + 1 < count && B()(key[i + 1], key[i])) {
        const K other = key[i];
        key[i] = key[i + 1];
        key[i + 1] = other;
        const I from = place[i];
        place[i] = place[i + 1];
        place[i + 1] = from;
      }
    }
  }
  for (int width = Items;; width *= 2) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (first + i < count) {
        keys[first + i] = key[i];
        places[first + i] = place[i];
      }
    }
    __syncthreads();
    if (width >= count || width >= Items * Lanes) return;
    const auto runs = Runs<int>::around(first, width, count);
    merge_runs<B>(keys, places, runs, first - first / (2 * width) * (2 * width), key, place);
    __syncthreads();
  }
}

// The elements of a row of sorted runs of `width`, merged by pairs from one memory to another,
// `Items` a thread at a time by way of LDS; `width` is a multiple of what the block takes at a
// time. All threads of the block call it.
template <typename B, int Items, int Threads, typename K, typename I, typename R>
KILN_DEVICE void merge_row(const K* keys, const I* places, K* to_keys, I* to_places, R width,
                           R count, K* lds_keys, I* lds_places) {
  constexpr int tile = Items * Threads;
  const int thread = threadIdx.x;
  for (R base = 0; base < count; base += tile) {
    const auto runs = Runs<R>::around(base, width, count);
    const R skipped = base - runs.begin, left = runs.end - base;
    const int here = left < tile ? int(left) : tile;
    const R before = taken_of_first<B>(keys, runs, skipped);
    const R after = taken_of_first<B>(keys, runs, R(skipped + here));
    const int of_first = int(after - before);
    const R a = runs.begin + before, b = runs.middle + (skipped - before) - of_first;
    for (int i = thread; i < here; i += Threads) {
      const R from = (i < of_first ? a : b) + i;
      lds_keys[i] = keys[from];
      lds_places[i] = places[from];
    }
    __syncthreads();
    K key[Items];
    I place[Items];
    const int first = thread * Items;
    merge_runs<B>(lds_keys, lds_places, Runs<int>{0, of_first, here}, first, key, place);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (first + i < here) {
        lds_keys[first + i] = key[i];
        lds_places[first + i] = place[i];
      }
    }
    __syncthreads();
    for (int i = thread; i < here; i += Threads) {
      to_keys[base + i] = lds_keys[i];
      to_places[base + i] = lds_places[i];
    }
    __syncthreads();
  }
}

}  // namespace kiln
