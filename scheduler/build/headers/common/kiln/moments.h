// Sums of squares of distances, of elements that are read once.
#pragma once

#include <kiln/wave.h>

namespace kiln {

// How many elements, their mean, and the sum of the squares of their distances from it.
template <typename T>
struct Moments {
  T count, mean, squares;
  // The same sum about another point, exactly: what is stored as the mean is rounded.
  KILN_DEVICE T about(T point) const {
    const T off = mean - point;
    return count > 0 ? squares + count * off * off : T(0);
  }
};

// Those of two sets together (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
// for computing sample variances", 1979).
template <typename T>
struct JoinMoments {
  static constexpr Moments<T> zero = {T(0), T(0), T(0)};
  KILN_DEVICE Moments<T> operator()(Moments<T> a, Moments<T> b) const {
    const T count = a.count + b.count, apart = b.mean - a.mean;
    const T share = count > 0 ? b.count / count : T(0);
    // From the left: beside an empty set the distance is a mean, whose square may be infinite.
    return {count, a.mean + apart * share,
            a.squares + b.squares + apart * (a.count * share) * apart};
  }
};

// A thread's elements, summed as distances from its first one. That one is among the elements: where
// it is far from their mean, its own square outweighs what the difference of the sums loses, so the
// relative error stays within a few times the number of elements times the type's rounding.
template <typename T>
struct Shifted {
  T first, sum, squares;
  int32_t count;
  bool begun;
  KILN_DEVICE void add(T value) {
    if (!begun) first = value;
    begun = true;
    const T apart = value - first;
    count += 1;
    sum += apart;
    squares += apart * apart;
  }
  KILN_DEVICE Moments<T> moments() const {
    if (count == 0) return JoinMoments<T>::zero;
    const T number = static_cast<T>(count), mean = sum / number, rest = squares - sum * mean;
    return {number, first + mean, rest < 0 ? T(0) : rest};
  }
};

}  // namespace kiln
