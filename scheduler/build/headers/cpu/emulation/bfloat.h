// Conversions to bf16 that the compiler calls by name on hosts without instructions for them, and
// that the bundled compiler's runtime library does not have. To nearest, ties to even; NaN stays NaN.
#pragma once

#include <stdint.h>

extern "C" {

__attribute__((visibility("hidden"), used)) inline __bf16 __truncsfbf2(float value) {
  uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if (value != value) {
    bits |= 0x400000;
  } else {
    bits += 0x7fff + ((bits >> 16) & 1);
  }
  return __builtin_bit_cast(__bf16, uint16_t(bits >> 16));
}

// Through a float that is rounded to odd, so that nothing is rounded twice.
__attribute__((visibility("hidden"), used)) inline __bf16 __truncdfbf2(double value) {
  float nearest = float(value);
  uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  if (double(nearest) != value && value == value) {
    if (__builtin_fabs(double(nearest)) > __builtin_fabs(value)) --bits;
    bits |= 1;
  }
  return __truncsfbf2(__builtin_bit_cast(float, bits));
}
}
