// The floats of 8 bits: to float exactly, and from it to the nearest, ties to even, as torch's
// conversions on the CPU are. Hardware has instructions for some of them that differ in what is
// beyond the largest; this is the same everywhere.
#pragma once

namespace kiln {

// What is larger than the largest number, by its code without sign.
enum class Beyond { kSaturates, kInfinite, kNaN };

// `Fraction` bits of it and an exponent of 7 - Fraction bits less `Bias`. With kNaN there is one NaN,
// in place of -0.
template <int Fraction, int Bias, Beyond Rule>
struct Float8 {
  uint8_t bits;
};
using f8e4m3fn = Float8<3, 7, Beyond::kSaturates>;
using f8e5m2 = Float8<2, 15, Beyond::kInfinite>;
using f8e4m3fnuz = Float8<3, 8, Beyond::kNaN>;
using f8e5m2fnuz = Float8<2, 16, Beyond::kNaN>;

// 2^(bits - 127), 255 is NaN.
struct f8e8m0fnu {
  uint8_t bits;
};

template <int Fraction, int Bias, Beyond Rule>
KILN_INLINE float to_float(Float8<Fraction, Bias, Rule> value) {
  // The exponent and fraction in their places in a float, whose exponent has another bias.
  const uint32_t magnitude = value.bits & 0x7fu;
  const float scale = bit_cast<float>(uint32_t(254 - Bias) << 23);
  const float number = bit_cast<float>(magnitude << (23 - Fraction)) * scale;
  const uint32_t sign = uint32_t(value.bits & 0x80u) << 24;
  const uint32_t result = bit_cast<uint32_t>(number) | sign;
  if constexpr (Rule == Beyond::kNaN) {
    return value.bits == 0x80u ? __builtin_nanf("") : bit_cast<float>(result);
  } else if constexpr (Rule == Beyond::kSaturates) {
    return magnitude == 0x7fu ? __builtin_nanf("") : bit_cast<float>(result);
  } else {
    const float beyond = magnitude == 0x7cu ? bit_cast<float>(0x7f800000u | sign)
                                            : __builtin_nanf("");
    return magnitude >= 0x7cu ? beyond : bit_cast<float>(result);
  }
}

KILN_INLINE float to_float(f8e8m0fnu value) {
  const uint32_t exponent = value.bits;
  const uint32_t number = exponent == 0 ? 0x400000u : exponent << 23;
  return bit_cast<float>(exponent == 255 ? 0x7fc00000u : number);
}

namespace detail {

template <int Fraction, int Bias, Beyond Rule>
KILN_INLINE Float8<Fraction, Bias, Rule> to_float8(float value, Float8<Fraction, Bias, Rule>) {
  constexpr uint32_t kLeast = uint32_t(128 - Bias) << 23;  // the smallest normal number, as a float
  constexpr uint32_t kInfinity = 0x7f800000u;
  const uint32_t all = bit_cast<uint32_t>(value);
  const uint32_t sign = (all >> 24) & 0x80u, magnitude = all & 0x7fffffffu;
  uint32_t code;
  if (magnitude >= kLeast) {
    const uint32_t moved = magnitude - (uint32_t(127 - Bias) << 23);
    code = (moved + (1u << (22 - Fraction)) - 1 + ((moved >> (23 - Fraction)) & 1)) >>
           (23 - Fraction);
  } else {
    // Added to a number whose last place is the format's: the sum is rounded as the format asks.
    constexpr uint32_t kShift = uint32_t(127 + 1 - Bias - Fraction + 23) << 23;
    const float sum = bit_cast<float>(magnitude) + bit_cast<float>(kShift);
    code = bit_cast<uint32_t>(sum) - kShift;
  }
  if constexpr (Rule == Beyond::kNaN) {
    const bool none = magnitude > kInfinity || code > 0x7fu;
    return {static_cast<uint8_t>(none ? 0x80u : code == 0 ? 0u : code | sign)};
  } else {
    constexpr uint32_t kBeyond = Rule == Beyond::kSaturates ? 0x7eu : 0x7cu;
    code = code > kBeyond ? kBeyond : code;
    return {static_cast<uint8_t>((magnitude > kInfinity ? 0x7fu : code) | sign)};
  }
}

KILN_INLINE f8e8m0fnu to_float8(float value, f8e8m0fnu) {
  const uint32_t magnitude = bit_cast<uint32_t>(value) & 0x7fffffffu;
  const uint32_t exponent = magnitude >> 23, fraction = magnitude & 0x7fffffu;
  const bool up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
  return {static_cast<uint8_t>(exponent == 255 ? 255u : exponent + up)};
}

}  // namespace detail

}  // namespace kiln
