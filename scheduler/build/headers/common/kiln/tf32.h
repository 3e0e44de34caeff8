// f32 that is multiplied with 10 bits of its mantissa: NVIDIA's tf32, AMD's xf32.
#pragma once

#include <kiln/held.h>
#include <kiln/matrix_instructions.h>
#include <kiln/types.h>

namespace kiln {

// It is held as it is.
template <>
struct HeldAs<instruction::tf32, true> {
  using type = float;
};

namespace operand {

// What of f32 goes to LDS: rounded to nearest, ties away from zero, as NVIDIA's products do by
// themselves (cvt.rna.tf32.f32). AMD's take the upper bits, whatever is below, so that without this
// each would be too small.
template <int N>
__device__ __forceinline__ Vec<float, N> rounded_to_tf32(Vec<float, N> values) {
#if !defined(__CUDA__)
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float rounded = bit_cast<float>((bit_cast<uint32_t>(float(values[i])) + 0x1000u) & ~0x1fffu);
    // NaN of any bits: some would carry into the sign, others be cut off.
    values[i] = values[i] == values[i] ? rounded : __builtin_nanf("");
  }
#endif
  return values;
}

}  // namespace operand
}  // namespace kiln
