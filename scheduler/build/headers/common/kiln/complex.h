// Complex numbers, as torch lays them out: two floats or doubles, the real part first. Included by
// kiln/types.h; the functions of them are in kiln/complex_functions.h.
#pragma once

namespace kiln {

template <typename T>
struct alignas(2 * sizeof(T)) complex {
  T re, im;

  complex() = default;
  KILN_INLINE constexpr complex(T real, T imag = T(0)) : re(real), im(imag) {}
  template <typename U>
  KILN_INLINE explicit constexpr complex(complex<U> z)
      : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}

  friend KILN_INLINE constexpr complex operator+(complex a, complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend KILN_INLINE constexpr complex operator-(complex a, complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend KILN_INLINE constexpr complex operator-(complex a) { return {-a.re, -a.im}; }
  friend KILN_INLINE constexpr complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // By the larger part of the divisor, so that nothing overflows on the way (Smith).
  friend KILN_INLINE complex operator/(complex a, complex b) {
    const T c = b.re < T(0) ? -b.re : b.re, d = b.im < T(0) ? -b.im : b.im;
    if (c >= d) {
      if (c == T(0) && d == T(0)) return {a.re / c, a.im / d};
      const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = T(1) / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
  }
  friend KILN_INLINE constexpr bool operator==(complex a, complex b) {
    return a.re == b.re && a.im == b.im;
  }
  friend KILN_INLINE constexpr bool operator!=(complex a, complex b) { return !(a == b); }
};

template <typename T>
KILN_INLINE T real(complex<T> z) {
  return z.re;
}
template <typename T>
KILN_INLINE T imag(complex<T> z) {
  return z.im;
}
template <typename T>
KILN_INLINE complex<T> conj(complex<T> z) {
  return {z.re, -z.im};
}

}  // namespace kiln
