// Matrix instructions of CDNA (MFMA), lane for lane: AMD's CDNA3 ISA, section 7.1 "Matrix
// arithmetic instructions" (input and output layouts), one block, wave of 64 lanes.
//
// Lane l = i + D*g (D rows and columns, g < 64/D) holds A[i][E*g + e] and B[E*g + e][i] in its
// element e < E = K*D/64. Its element r of C and D is at column i and row
// 4*(64/D)*(r/4) + 4*g + r%4; in double precision at row (64/D)*r + g.
#pragma once

#include "matrix.h"

namespace kiln_cpu {

template <typename T>
constexpr int mfma_row(int r, int group, int groups) {
  return sizeof(T) == 8 ? groups * r + group : 4 * groups * (r / 4) + 4 * group + r % 4;
}

template <typename T>
inline auto element(const T& value, int i) {
  if constexpr (requires { value[0]; }) {
    return value[i];
  } else {
    return value;
  }
}

template <typename T, int D, int K, typename Input, typename C>
__attribute__((noinline, convergent)) C mfma(Input a, Input b, C c, int modifiers, int line) {
  constexpr int groups = 64 / D, inputs = K / groups, outputs = D * D / 64;
  Fiber* me = self();
  whole_wave(me, line);
  if (modifiers != 0) fail("cbsz, abid and blgp of MFMA are not emulated", line);
  auto& operands = Operands<T, D, D, K>::of(exchange_of(me));
  int i = int(me->lane) % D, group = int(me->lane) / D;
  for (int e = 0; e < inputs; ++e) {
    operands.a[inputs * group + e][i] = widen(element(a, e));
    operands.b[i][inputs * group + e] = widen(element(b, e));
  }
  for (int r = 0; r < outputs; ++r) operands.c[i][mfma_row<T>(r, group, groups)] = c[r];
  meet(me, Wait::matrix, line, [&] { operands.multiply(); });
  for (int r = 0; r < outputs; ++r) c[r] = operands.c[i][mfma_row<T>(r, group, groups)];
  return c;
}

}  // namespace kiln_cpu

#define KILN_CPU_MFMA(name, T, D, K, Input, C)                                                   \
  inline ::kiln_cpu::C __builtin_amdgcn_mfma_##name(                                             \
      ::kiln_cpu::Input a, ::kiln_cpu::Input b, ::kiln_cpu::C c, int cbsz, int abid, int blgp,   \
      int line = __builtin_LINE()) {                                                             \
    return ::kiln_cpu::mfma<T, D, K, ::kiln_cpu::Input>(a, b, c, cbsz | abid | blgp, line);      \
  }

namespace kiln_cpu {
using Float = float;
using Double = double;
}  // namespace kiln_cpu

KILN_CPU_MFMA(f32_16x16x4f32, float, 16, 4, Float, Float4)
KILN_CPU_MFMA(f32_32x32x2f32, float, 32, 2, Float, Float16)
KILN_CPU_MFMA(f32_16x16x16f16, float, 16, 16, Half4, Float4)
KILN_CPU_MFMA(f32_32x32x8f16, float, 32, 8, Half4, Float16)
KILN_CPU_MFMA(f32_16x16x16bf16_1k, float, 16, 16, Short4, Float4)
KILN_CPU_MFMA(f32_32x32x8bf16_1k, float, 32, 8, Short4, Float16)
KILN_CPU_MFMA(f64_16x16x4f64, double, 16, 4, Double, Double4)
#if defined(__gfx950__)
KILN_CPU_MFMA(f32_16x16x32_f16, float, 16, 32, Half8, Float4)
KILN_CPU_MFMA(f32_32x32x16_f16, float, 32, 16, Half8, Float16)
KILN_CPU_MFMA(f32_16x16x32_bf16, float, 16, 32, Bfloat8, Float4)
KILN_CPU_MFMA(f32_32x32x16_bf16, float, 32, 16, Bfloat8, Float16)
#endif
