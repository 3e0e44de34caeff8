// Functions of float for results that are rounded to f16 or bf16: over the hardware's own
// approximations, without branches. docs/math.md states their errors, and a test holds it.
//
// Special values are those of C's <math.h>, as in kiln/math.h. Results below 2^-126 may be 0.
#pragma once

#include <kiln/floats.h>
#include <kiln/hardware.h>
#include <kiln/types.h>

namespace kiln::fast {

namespace detail {

using kiln::detail::fma;
using kiln::detail::polynomial;

constexpr float kLog2E = 0x1.715476p+0f, kLn2 = 0x1.62e43p-1f, kLog10Of2 = 0x1.344136p-2f;

// Each fits its function's relative error over the stated range (Lawson's iteration), from the
// constant term up.
//
// erf(u) / u in z = u^2, |u| < 1/2
constexpr float kErf[] = {0x1.20dd72p+0f, -0x1.812248p-2f, 0x1.cc9ef8p-4f, -0x1.8f9828p-6f};
// log2((1 - erf(u)) / (1 + erf(u))) / -u in z = u^2, |u| < 4.6; beyond it grows on.
constexpr float kErfLogit[] = {0x1.a0bdf8p+1f,  0x1.2fb39ap-2f,  -0x1.3a66cep-11f, -0x1.d1cf9ap-10f,
                               0x1.09f8f6p-12f, -0x1.1ba47ap-16f, 0x1.e7530ep-22f};
// tanh(u) / u in z = u^2, |u| < 0.3
constexpr float kTanh[] = {0x1p+0f, -0x1.55545cp-2f, 0x1.10a45ap-3f, -0x1.9b6c1p-5f};
// (exp(x) - 1) / x, |x| < 1/4
constexpr float kExpm1[] = {0x1p+0f, 0x1.ffff8ep-2f, 0x1.5555b6p-3f, 0x1.5638d8p-5f, 0x1.11110ap-7f};
// log(1 + x) / x, |x| < 1/8
constexpr float kLog1p[] = {0x1p+0f, -0x1.fffc9cp-2f, 0x1.55507ap-2f, -0x1.035ff2p-2f,
                            0x1.a05c96p-3f};

KILN_INLINE float magnitude(float x) { return __builtin_fabsf(x); }

// 2 / (1 + 2^t).
KILN_INLINE float logistic(float t) {
  return hardware_reciprocal(0.5f + hardware_exp2(t - 1.f));
}

// x where it is not too small for the instructions, else scaled up by 2^48, and whether it was.
KILN_INLINE float raised(float x, bool& small) {
  small = x < 0x1p-100f;
  return small ? x * 0x1p48f : x;
}

}  // namespace detail

KILN_INLINE float exp2(float x) { return hardware_exp2(x); }

KILN_INLINE float exp(float x) { return hardware_exp2(x * detail::kLog2E); }

KILN_INLINE float expm1(float x) {
  const float near = x * detail::polynomial<detail::kExpm1>(x);
  return detail::magnitude(x) < 0.25f ? near : exp(x) - 1.f;
}

KILN_INLINE float log2(float x) {
  bool small;
  const float value = hardware_log2(detail::raised(x, small));
  return small ? value - 48.f : value;
}

KILN_INLINE float log(float x) { return log2(x) * detail::kLn2; }

KILN_INLINE float log10(float x) { return log2(x) * detail::kLog10Of2; }

KILN_INLINE float log1p(float x) {
  const float near = x * detail::polynomial<detail::kLog1p>(x);
  return detail::magnitude(x) < 0.125f ? near : hardware_log2(1.f + x) * detail::kLn2;
}

// a / b by way of b's mantissa, so that its reciprocal is in range whatever b is; what is done with
// b alone is done once where b stays the same.
KILN_INLINE float divide(float a, float b) {
#if defined(__AMDGCN__)
  const float inverse = 0.5f * hardware_reciprocal(__builtin_amdgcn_frexp_mantf(b));
  return __builtin_ldexpf(a * inverse, 1 - __builtin_amdgcn_frexp_expf(b));
#elif defined(__NVPTX__)
  const float size = __builtin_fabsf(b);
  const float scale = size > 0x1p100f ? 0x1p-64f : size < 0x1p-100f ? 0x1p64f : 1.f;
  return a * hardware_reciprocal(b * scale) * scale;
#else
  return a / b;
#endif
}

KILN_INLINE float reciprocal(float x) { return divide(1.f, x); }

KILN_INLINE float sqrt(float x) {
  bool small;
  const float value = hardware_sqrt(detail::raised(x, small));
  return small ? value * 0x1p-24f : value;
}

KILN_INLINE float rsqrt(float x) {
  bool small;
  const float value = hardware_rsqrt(detail::raised(x, small));
  return small ? value * 0x1p24f : value;
}

KILN_INLINE float sigmoid(float x) {
  return hardware_reciprocal(1.f + hardware_exp2(x * -detail::kLog2E));
}

// 1 + tanh(x) and 1 + erf(x), where the function itself would lose what is near -1: the factors of
// both kinds of gelu.
KILN_INLINE float one_plus_tanh(float x) { return detail::logistic(x * (-2.f * detail::kLog2E)); }

KILN_INLINE float one_plus_erf(float x) {
  return detail::logistic(-x * detail::polynomial<detail::kErfLogit>(x * x));
}

KILN_INLINE float tanh(float x) {
  const float near = x * detail::polynomial<detail::kTanh>(x * x);
  return detail::magnitude(x) < 0.3f ? near : one_plus_tanh(x) - 1.f;
}

KILN_INLINE float erf(float x) {
  const float near = x * detail::polynomial<detail::kErf>(x * x);
  return detail::magnitude(x) < 0.5f ? near : one_plus_erf(x) - 1.f;
}

}  // namespace kiln::fast
