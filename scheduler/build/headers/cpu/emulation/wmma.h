// Matrix instructions of RDNA (WMMA), lane for lane, wave of 32 lanes, 16x16x16.
//
// RDNA3 (AMD's RDNA3 ISA, section 7.9): lane l holds row l%16 of A and column l%16 of B whole, so
// that lanes 16 to 31 must repeat lanes 0 to 15; its element r of C and D is at column l%16 and
// row 2*r + l/16. RDNA4 (RDNA4 ISA, section 7.12): lane l holds k = 8*(l/16) + e in its element
// e < 8, and its element r of C and D is at row 8*(l/16) + r.
#pragma once

#include "matrix.h"

namespace kiln_cpu {

using Tile = Operands<float, 16, 16, 16>;

#if defined(__GFX11__)

template <typename Input>
__attribute__((noinline, convergent)) Float8 wmma(Input a, Input b, Float8 c, int line) {
  Fiber* me = self();
  whole_wave(me, line);
  Exchange& exchange = exchange_of(me);
  Tile& tile = Tile::of(exchange);
  int i = int(me->lane) % 16, half = int(me->lane) / 16;
  // The upper lanes' own copies lie beside the tile, for the comparison below.
  static_assert(sizeof(Tile) <= sizeof(exchange.a) && sizeof(Input) * 64 <= sizeof(exchange.c));
  auto upper = reinterpret_cast<Input*>(exchange.c) + 2 * i, lower = upper + 32;
  Input* own = half ? upper : lower;
  own[0] = a;
  own[1] = b;
  if (half == 0) {
    for (int k = 0; k < 16; ++k) {
      tile.a[k][i] = widen(a[k]);
      tile.b[i][k] = widen(b[k]);
    }
  }
  for (int r = 0; r < 8; ++r) tile.c[i][2 * r + half] = c[r];
  meet(me, Wait::matrix, line, [&] { tile.multiply(); });
  if (half && __builtin_memcmp(upper, lower, 2 * sizeof(Input)) != 0) {
    fail("lanes 16 to 31 of a WMMA do not repeat the operands of lanes 0 to 15", line);
  }
  for (int r = 0; r < 8; ++r) c[r] = tile.c[i][2 * r + half];
  return c;
}

#else

template <typename Input>
__attribute__((noinline, convergent)) Float8 wmma(Input a, Input b, Float8 c, int line) {
  Fiber* me = self();
  whole_wave(me, line);
  Tile& tile = Tile::of(exchange_of(me));
  int i = int(me->lane) % 16, half = int(me->lane) / 16;
  for (int e = 0; e < 8; ++e) {
    tile.a[8 * half + e][i] = widen(a[e]);
    tile.b[i][8 * half + e] = widen(b[e]);
  }
  for (int r = 0; r < 8; ++r) tile.c[i][8 * half + r] = c[r];
  meet(me, Wait::matrix, line, [&] { tile.multiply(); });
  for (int r = 0; r < 8; ++r) c[r] = tile.c[i][8 * half + r];
  return c;
}

#endif

}  // namespace kiln_cpu

#define KILN_CPU_WMMA(name, Input)                                                              \
  inline ::kiln_cpu::Float8 __builtin_amdgcn_wmma_##name(                                       \
      ::kiln_cpu::Input a, ::kiln_cpu::Input b, ::kiln_cpu::Float8 c,                           \
      int line = __builtin_LINE()) {                                                            \
    return ::kiln_cpu::wmma<::kiln_cpu::Input>(a, b, c, line);                                  \
  }

#if defined(__GFX11__)
KILN_CPU_WMMA(f32_16x16x16_f16_w32, Half16)
KILN_CPU_WMMA(f32_16x16x16_bf16_w32, Short16)
#else
KILN_CPU_WMMA(f32_16x16x16_f16_w32_gfx12, Half8)
KILN_CPU_WMMA(f32_16x16x16_bf16_w32_gfx12, Short8)
#endif
