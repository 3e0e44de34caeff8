// Matrix instructions, lane for lane: each as its row in kiln/matrix_instructions.h describes it.
#pragma once

#include <kiln/matrix_instructions.h>

#include "block.h"

namespace kiln_cpu {

// One element as the accumulator's type. The builtins that take bf16 as short hand over its bits.
inline float widen(_Float16 value) { return float(value); }
inline float widen(float value) { return value; }
inline double widen(double value) { return value; }
inline float widen(short bits) { return __builtin_bit_cast(float, uint32_t(uint16_t(bits)) << 16); }
inline int32_t widen(int8_t value) { return value; }
inline float widen(__bf16 value) { return widen(__builtin_bit_cast(short, value)); }

// What an instruction takes of an element: of f32 for tf32 its 10 highest bits of mantissa, rounded to
// nearest, ties away from zero (infinity and NaN have none that could carry); for xf32 these as they are.
template <typename I, typename T>
inline auto taken(T value) {
  if constexpr (__is_same(typename I::Element, kiln::instruction::tf32)) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, float(value));
    if ((bits & 0x7f800000u) == 0x7f800000u) return float(value);
    return __builtin_bit_cast(float, (bits + 0x1000u) & ~0x1fffu);
  } else if constexpr (__is_same(typename I::Element, kiln::instruction::xf32)) {
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, float(value)) & ~0x1fffu);
  } else if constexpr (__is_same(typename I::Element, kiln::instruction::f8e4m3fn)) {
    const uint32_t places = (value & 0x80u) << 24 | (value & 0x7fu) << 20;
    return (value & 0x7f) == 0x7f ? __builtin_nanf("") : __builtin_bit_cast(float, places) * 0x1p120f;
  } else if constexpr (__is_same(typename I::Element, kiln::instruction::f8e5m2)) {
    return float(__builtin_bit_cast(_Float16, uint16_t(value << 8)));
  } else {
    return widen(value);
  }
}

template <typename T>
inline auto element(const T& value, int i) {
  if constexpr (requires { value[0]; }) {
    return value[i];
  } else {
    return value;
  }
}

template <typename T>
struct Summed {
  using type = T;
};
template <>
struct Summed<int32_t> {
  using type = uint32_t;
};

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
    // Integers wrap around.
    using Sum = Summed<T>::type;
    typedef Sum Column __attribute__((vector_size(M * sizeof(T))));
    constexpr int step = M == 16 && N % 4 == 0 && sizeof(T) == 4 ? 4 : 2;
    for (int j = 0; j < N; j += step) {
      Column sum[step];
      for (int s = 0; s < step; ++s) sum[s] = *reinterpret_cast<Column*>(c[j + s]);
      for (int k = 0; k < K; ++k) {
        Column column = *reinterpret_cast<Column*>(a[k]);
        for (int s = 0; s < step; ++s) {
          Column factor = Column{} + Sum(b[j + s][k]);
          if constexpr (__is_same(T, int32_t)) {
            sum[s] += column * factor;
          } else {
            sum[s] = __builtin_elementwise_fma(column, factor, sum[s]);
          }
        }
      }
      for (int s = 0; s < step; ++s) *reinterpret_cast<Column*>(c[j + s]) = sum[s];
    }
  }
};

// The lanes' own operands, where the hardware wants an element in several lanes: the first lanes
// hold all of them, and the others must repeat those.
template <typename I>
struct Repeated {
  static constexpr int kFirst = I::kLanes / I::kCopies;
  struct Own {
    typename I::A a;
    typename I::B b;
  } own[I::kLanes];

  bool agree() const {
    for (int lane = kFirst; lane < I::kLanes; ++lane) {
      if (__builtin_memcmp(&own[lane], &own[lane % kFirst], sizeof(Own)) != 0) return false;
    }
    return true;
  }
};

template <typename I>
__attribute__((noinline, convergent)) typename I::D multiply(typename I::A a, typename I::B b,
                                                             typename I::D c, int line) {
  Fiber* me = self();
  if (me->wave->size != I::kLanes) fail("a matrix instruction in an incomplete wave", line);
  using Tile = Operands<typename I::Accumulator, I::kM, I::kN, I::kK>;
  Exchange& exchange = exchange_of(me);
  Tile& tile = Tile::of(exchange);
  const int lane = int(me->lane);
  Repeated<I>* repeated = nullptr;
  if constexpr (I::kCopies > 1) {  // beside the tile
    static_assert(sizeof(Tile) <= sizeof(exchange.a) + sizeof(exchange.b));
    static_assert(sizeof(Repeated<I>) <= sizeof(exchange.c));
    repeated = reinterpret_cast<Repeated<I>*>(exchange.c);
    repeated->own[lane] = {a, b};
  }
  for (int v = 0; v < I::kValuesA; ++v) {
    tile.a[I::a_column(lane, v)][I::a_row(lane, v)] = taken<I>(element(a, v));
  }
  for (int v = 0; v < I::kValuesB; ++v) {
    tile.b[I::b_column(lane, v)][I::b_row(lane, v)] = taken<I>(element(b, v));
  }
  for (int v = 0; v < I::kValues; ++v) tile.c[I::d_column(lane, v)][I::d_row(lane, v)] = c[v];
  meet(me, Wait::matrix, line, [&] {
    if constexpr (I::kCopies > 1) {
      if (!repeated->agree()) {
        fail("lanes 16 to 31 of a WMMA do not repeat the operands of lanes 0 to 15", line);
      }
    }
    tile.multiply();
  });
  for (int v = 0; v < I::kValues; ++v) c[v] = tile.c[I::d_column(lane, v)][I::d_row(lane, v)];
  return c;
}

}  // namespace kiln_cpu

#if defined(KILN_MATRIX_INSTRUCTIONS)
// One builtin each, by how it is called.
#define KILN_CPU_MATRIX(name, call)                                                              \
  inline ::kiln::instruction::name::D __builtin_amdgcn_##name(                                   \
      KILN_CPU_TAKES_##call(::kiln::instruction::name) int line = __builtin_LINE()) {            \
    KILN_CPU_REFUSE_##call;                                                                      \
    return ::kiln_cpu::multiply<::kiln::instruction::name>(                                      \
        __builtin_bit_cast(::kiln::instruction::name::A, a),                                     \
        __builtin_bit_cast(::kiln::instruction::name::B, b), c, line);                           \
  }
#define KILN_CPU_TAKES_0(I) I::A a, I::B b, I::D c,
#define KILN_CPU_TAKES_words_0(I) I::Words a, I::Words b, I::D c,
// Broadcasts and permutations.
#define KILN_CPU_TAKES_3(I) I::A a, I::B b, I::D c, int cbsz, int abid, int blgp,
#define KILN_CPU_TAKES_words_3(I) I::Words a, I::Words b, I::D c, int cbsz, int abid, int blgp,
#define KILN_CPU_TAKES_iu8(I) \
  bool signed_a, I::Words a, bool signed_b, I::Words b, I::D c, bool clamp,
#define KILN_CPU_TAKES_fp8(I) KILN_CPU_TAKES_words_0(I)
#define KILN_CPU_TAKES_bf8(I) KILN_CPU_TAKES_words_0(I)
#define KILN_CPU_REFUSE_0
#define KILN_CPU_REFUSE_words_0
#define KILN_CPU_REFUSE_3 \
  if (cbsz | abid | blgp) ::kiln_cpu::fail("cbsz, abid and blgp of MFMA are not emulated", line)
#define KILN_CPU_REFUSE_words_3 KILN_CPU_REFUSE_3
#define KILN_CPU_REFUSE_iu8        \
  if (!signed_a || !signed_b || clamp) \
  ::kiln_cpu::fail("unsigned operands and limits of WMMA are not emulated", line)
#define KILN_CPU_REFUSE_fp8
#define KILN_CPU_REFUSE_bf8
KILN_MATRIX_INSTRUCTIONS(KILN_CPU_MATRIX)
#endif

#if defined(__gfx950__)
// The formats by their numbers, and scales, which are not emulated.
inline auto __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
    ::kiln::instruction::mfma_f32_16x16x128_f8f6f4_fp8::Words a,
    ::kiln::instruction::mfma_f32_16x16x128_f8f6f4_fp8::Words b,
    ::kiln::instruction::mfma_f32_16x16x128_f8f6f4_fp8::D c, int cbsz, int blgp, int select_a, int scale_a,
    int select_b, int scale_b, int line = __builtin_LINE()) {
  if (cbsz != blgp || cbsz > 1 || (select_a | scale_a | select_b | scale_b)) {
    ::kiln_cpu::fail("scales and other formats of MFMA are not emulated", line);
  }
  return cbsz == 0 ? __builtin_amdgcn_mfma_f32_16x16x128_f8f6f4_fp8(a, b, c, line)
                   : __builtin_amdgcn_mfma_f32_16x16x128_f8f6f4_bf8(a, b, c, line);
}
#endif
