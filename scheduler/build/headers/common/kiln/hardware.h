// The hardware's own approximations of float functions: one instruction each on a GPU.
//
// As AMD's ISA manuals and NVIDIA's PTX manual state them, each is within 2 units in the last place
// of a normal result (hardware_log2: within 2^-22 where its result is below 1). Arguments and
// results below 2^-126 may be taken as 0 of their sign. Special values are those of C's <math.h>:
// exp2(-inf) is 0, reciprocal(0) inf of its sign, NaN stays NaN.
// The emulation on the CPU has the functions of kiln/elementary.h in their place.
#pragma once

#include <kiln/elementary.h>
#include <kiln/types.h>

namespace kiln {

#if defined(__AMDGCN__)
#define KILN_HARDWARE(name, builtin, instruction, plain) \
  KILN_INLINE float name(float x) { return builtin(x); }
#elif defined(__NVPTX__)
#define KILN_HARDWARE(name, builtin, instruction, plain)           \
  KILN_INLINE float name(float x) {                                \
    float y;                                                       \
    asm(instruction ".approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                                      \
  }
#else
#define KILN_HARDWARE(name, builtin, instruction, plain) \
  KILN_INLINE float name(float x) { return plain(x); }
#endif

KILN_HARDWARE(hardware_exp2, __builtin_amdgcn_exp2f, "ex2", exp2)
KILN_HARDWARE(hardware_log2, __builtin_amdgcn_logf, "lg2", log2)
KILN_HARDWARE(hardware_reciprocal, __builtin_amdgcn_rcpf, "rcp", reciprocal)
KILN_HARDWARE(hardware_rsqrt, __builtin_amdgcn_rsqf, "rsqrt", rsqrt)
KILN_HARDWARE(hardware_sqrt, __builtin_amdgcn_sqrtf, "sqrt", sqrt)

#undef KILN_HARDWARE

}  // namespace kiln
