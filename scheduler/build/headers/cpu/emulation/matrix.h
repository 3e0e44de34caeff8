// What the matrix instructions of both families share.
#pragma once

#include "block.h"

namespace kiln_cpu {

template <typename T, int N>
using Vector = T __attribute__((ext_vector_type(N)));

using Half4 = Vector<_Float16, 4>;
using Half8 = Vector<_Float16, 8>;
using Half16 = Vector<_Float16, 16>;
using Bfloat8 = Vector<__bf16, 8>;
using Short2 = Vector<short, 2>;
using Short4 = Vector<short, 4>;
using Short8 = Vector<short, 8>;
using Short16 = Vector<short, 16>;
using Float4 = Vector<float, 4>;
using Float8 = Vector<float, 8>;
using Float16 = Vector<float, 16>;
using Double4 = Vector<double, 4>;

// One element as the accumulator's type. The builtins that take bf16 as short hand over its bits.
inline float widen(_Float16 value) { return float(value); }
inline float widen(float value) { return value; }
inline double widen(double value) { return value; }
inline float widen(short bits) { return __builtin_bit_cast(float, uint32_t(uint16_t(bits)) << 16); }
inline float widen(__bf16 value) { return widen(__builtin_bit_cast(short, value)); }

// The operands of D = A B + C over a whole wave: A by columns, B^T and C^T by rows, so that a
// column of D is one vector.
template <typename T, int M, int N, int K>
struct Operands {
  T a[K][M];
  T b[N][K];
  T c[N][M];

  static Operands& of(Exchange& exchange) {
    static_assert(sizeof(Operands) <= sizeof(Exchange), "does not fit");
    return *reinterpret_cast<Operands*>(&exchange);
  }

  // Sums over k in order, each product added with one rounding.
  __attribute__((noinline)) void multiply() {
    typedef T Column __attribute__((vector_size(M * sizeof(T))));
    constexpr int step = M == 16 && N % 4 == 0 && sizeof(T) == 4 ? 4 : 2;
    for (int j = 0; j < N; j += step) {
      Column sum[step];
      for (int s = 0; s < step; ++s) sum[s] = *reinterpret_cast<Column*>(c[j + s]);
      for (int k = 0; k < K; ++k) {
        Column column = *reinterpret_cast<Column*>(a[k]);
        for (int s = 0; s < step; ++s) {
          Column factor = Column{} + b[j + s][k];
          sum[s] = __builtin_elementwise_fma(column, factor, sum[s]);
        }
      }
      for (int s = 0; s < step; ++s) *reinterpret_cast<Column*>(c[j + s]) = sum[s];
    }
  }
};

inline void whole_wave(Fiber* me, int line) {
  if (me->wave->size != KILN_WAVE_SIZE) fail("a matrix instruction in an incomplete wave", line);
}

}  // namespace kiln_cpu
