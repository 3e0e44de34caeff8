// Polynomial coefficients of kiln/math.h, from the constant term up.
//
// Each interpolates its function at the Chebyshev nodes of the range, in 60 digits, rounded last.
#pragma once

#include <stdint.h>

namespace kiln::detail {

template <typename T>
struct Coefficients;

template <>
struct Coefficients<float> {
  // (exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2
  static constexpr float kExp[] = {
    0x1.000000p-1f, 0x1.555556p-3f, 0x1.5554e8p-5f, 0x1.1110e0p-7f,
    0x1.6d43b0p-10f, 0x1.a1256cp-13f};
  // (2^r - 1) / r, |r| <= 1/2
  static constexpr float kExp2[] = {
    0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6b08ep-5f, 0x1.3b2a1ap-7f,
    0x1.5d879ep-10f, 0x1.4440a0p-13f, 0x1.00a5e4p-16f};
  // (log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
  static constexpr float kLog[] = {
    0x1.555556p-1f, 0x1.9999ecp-2f, 0x1.245c38p-2f, 0x1.ddd172p-3f};
  // (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in z = s^2
  static constexpr float kLogTail[] = {
    0x1.9999a4p-2f, 0x1.247a2cp-2f, 0x1.d808a2p-3f};
  // (sin(r) / r - 1) / z in z = r^2, |r| <= pi / 4
  static constexpr float kSin[] = {
    -0x1.555556p-3f, 0x1.11110ep-7f, -0x1.a013a2p-13f,
    0x1.6dbbeep-19f};
  // (cos(r) - 1 + z / 2) / z^2 in z = r^2
  static constexpr float kCos[] = {
    0x1.555556p-5f, -0x1.6c16c0p-10f, 0x1.a015c0p-16f,
    -0x1.2522e6p-22f};
  // (atan(r) / r - 1) / z in z = r^2, |r| <= sqrt(2) - 1
  static constexpr float kAtan[] = {
    -0x1.555556p-2f, 0x1.99997ap-3f, -0x1.248a12p-3f,
    0x1.c57adep-4f, -0x1.613e3ap-4f, 0x1.9d6be6p-5f};
  // (asin(r) / r - 1) / z in z = r^2, |r| <= 1/2
  static constexpr float kAsin[] = {
    0x1.555554p-3f, 0x1.333432p-4f, 0x1.6d5b8ep-5f, 0x1.fd921ap-6f,
    0x1.18e1f6p-6f, 0x1.14138cp-5f};
  // erf(x) / x - 1 in z = x^2, |x| <= 1
  static constexpr float kErf[] = {
    0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2d10p-4f,
    -0x1.b7fab6p-6f, 0x1.541248p-8f, -0x1.a44f50p-11f,
    0x1.4a5308p-14f};
  // (1 + 2 x) exp(x^2) erfc(x) in t = (x - 3) / (x + 3), 1 <= x <= 28
  static constexpr float kErfc[] = {
    0x1.40c522p+0f, -0x1.15c086p-3f, -0x1.85a138p-5f,
    0x1.0983b0p-3f, -0x1.e88d8cp-4f, 0x1.17c346p-4f,
    -0x1.851a78p-6f, 0x1.4ea806p-9f, 0x1.d4c5d2p-10f,
    -0x1.9516d8p-11f, 0x1.0418f6p-14f};
  // erfinv(x) / x - 1 in z = x^2, |x| <= 1/2
  static constexpr float kErfinv[] = {
    -0x1.d203b6p-4f, 0x1.db29dap-3f, 0x1.054454p-3f, 0x1.610602p-4f, 0x1.1a79a8p-4f,
    0x1.e98cfap-6f, 0x1.8f24aep-4f};
  // y of erfc(y) = exp(-(u + 3)^2), sqrt(ln(2)) - 3 <= u <= 1.08, to 2e-4
  static constexpr float kErfcinvGuess[] = {
    0x1.5b7b30p+1f, 0x1.0ac614p+0f, -0x1.3c6d84p-8f, -0x1.0a2de4p-10f, -0x1.7ffdbcp-11f,
    0x1.c837b0p-12f, 0x1.62079ap-11f};
};

template <>
struct Coefficients<double> {
  // (exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2
  static constexpr double kExp[] = {
    0x1.000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100bep-7,
    0x1.6c16c16c162c3p-10, 0x1.a01a01abf85abp-13, 0x1.a01a01a6e1e2ap-16, 0x1.71de01fdbf9cap-19,
    0x1.27e4db46cddd1p-22, 0x1.af4e554377204p-26, 0x1.1f7340dbc337ep-29};
  // (2^r - 1) / r, |r| <= 1/2
  static constexpr double kExp2[] = {
    0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c6p-5, 0x1.3b2ab6fba4e79p-7,
    0x1.5d87fe78a3f4bp-10, 0x1.430912f86b7bap-13, 0x1.ffcbfc6dc7729p-17, 0x1.62c02242c55a8p-20,
    0x1.b524eb7daec92p-24, 0x1.e4cf109c96ef0p-28, 0x1.e9ecb42c532a9p-32, 0x1.c4a308a6fefb4p-36};
  // (log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
  static constexpr double kLog[] = {
    0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476ba1p-2, 0x1.c71c72017a15cp-3,
    0x1.745cf8f6c9119p-3, 0x1.3b1c38474d3eep-3, 0x1.0fbe478772696p-3, 0x1.0c06cf14c641bp-3};
  // (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in z = s^2
  static constexpr double kLogTail[] = {
    0x1.999999999999ep-2, 0x1.249249248e511p-2, 0x1.c71c71d7ef489p-3, 0x1.745d09ebc663ep-3,
    0x1.3b18ba4163286p-3, 0x1.10188237ff7e4p-3, 0x1.087aabe253d9cp-3};
  // (sin(r) / r - 1) / z in z = r^2, |r| <= pi / 4
  static constexpr double kSin[] = {
    -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019926p-13, 0x1.71de3a545e700p-19,
    -0x1.ae64540f0ba18p-26, 0x1.61217c1864fa1p-33, -0x1.ab161757f0c63p-41};
  // (cos(r) - 1 + z / 2) / z^2 in z = r^2
  static constexpr double kCos[] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d02p-16, -0x1.27e4fb7711e1dp-22,
    0x1.1eed8de9ef73ep-29, -0x1.9394b76d1f265p-37, 0x1.ab76cf6e9b365p-45};
  // (atan(r) / r - 1) / z in z = r^2, |r| <= sqrt(2) - 1
  static constexpr double kAtan[] = {
    -0x1.5555555555555p-2, 0x1.9999999999953p-3, -0x1.249249248d768p-3, 0x1.c71c71c2fe5d9p-4,
    -0x1.745d165cb83aap-4, 0x1.3b1392b641b06p-4, -0x1.110e858a72e28p-4, 0x1.e199da4156fd9p-5,
    -0x1.ac78ec6b8cb98p-5, 0x1.74d64aa665b0ap-5, -0x1.1b2058fb5da30p-5, 0x1.0aa87c56e3eb5p-6};
  // (asin(r) / r - 1) / z in z = r^2, |r| <= 1/2
  static constexpr double kAsin[] = {
    0x1.5555555555556p-3, 0x1.3333333332ec4p-4, 0x1.6db6db6e3292ep-5, 0x1.f1c71c1d4aa0dp-6,
    0x1.6e8bb1d89492bp-6, 0x1.1c4d343fa57f6p-6, 0x1.c9cf3759fd8ffp-7, 0x1.78246f32d075cp-7,
    0x1.524ea8b3aad31p-7, 0x1.653a8f8cfd43cp-8, 0x1.1d661531b222ep-6, -0x1.e7a24f548c99fp-7,
    0x1.d78189767524ep-6};
  // erf(x) / x - 1 in z = x^2, |x| <= 1
  static constexpr double kErf[] = {
    0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b2fp-4, -0x1.b82ce31284df1p-6,
    0x1.565bcd0dba7cep-8, -0x1.c02db3dabced8p-11, 0x1.f9a321d4dab9dp-14, -0x1.f4d1e306e0024p-17,
    0x1.b9df216542643p-20, -0x1.5f1ec38082bdcp-23, 0x1.f7b46724de981p-27,
    -0x1.389c36ba235e9p-30, 0x1.05fccb83cf37bp-34};
  // (1 + 2 x) exp(x^2) erfc(x) in t = (x - 3) / (x + 3), 1 <= x <= 28
  static constexpr double kErfc[] = {
    0x1.40c522d7e4987p+0, -0x1.15c084bb9e8f3p-3, -0x1.85a15c58aa619p-5, 0x1.098366a5b46a8p-3,
    -0x1.e88b803a487b2p-4, 0x1.17ca2877f1b9ap-4, -0x1.8574c40c268dcp-6, 0x1.4b884e4229862p-9,
    0x1.ef1bdda09318fp-10, -0x1.98db50bd2e231p-11, -0x1.b912aae5ec983p-14,
    0x1.065a3107a4f1fp-13, 0x1.4c3a6fc09be4bp-18, -0x1.513bc50e2d92cp-16,
    -0x1.8b2a19161e9c9p-21, 0x1.d257ad951e706p-19, 0x1.8bd049a6ca084p-22,
    -0x1.50e2593b97f69p-21, -0x1.51cb593e9132ap-23, 0x1.11166b5ebb59fp-23,
    0x1.77ddea07d0582p-25, -0x1.3477ef7e14bcfp-25, 0x1.5db3cddfd8e32p-28};
  // erfinv(x) / x - 1 in z = x^2, |x| <= 1/2
  static constexpr double kErfinv[] = {
    -0x1.d203b725884abp-4, 0x1.db29fb2fee5d7p-3, 0x1.053c2c0aba07cp-3, 0x1.62847c4705debp-4,
    0x1.0a1318d0130dcp-4, 0x1.a7c84db275d4ap-5, 0x1.5eec804dd7c46p-5, 0x1.2aa3f3e188ee7p-5,
    0x1.049c5b96cfb40p-5, 0x1.b9dcba921c856p-6, 0x1.fa6e99af1c795p-6, -0x1.7eea0f1d96346p-10,
    0x1.6549e2528d134p-4, -0x1.8af293987967fp-4, 0x1.ebabd1a6a2469p-4};
  // y of erfc(y) = exp(-(u + 3)^2), sqrt(ln(2)) - 3 <= u <= 3.07, to 2e-7
  static constexpr double kErfcinvGuess[] = {
    0x1.5b7d49fac270dp+1, 0x1.0ab04aa130eecp+0, -0x1.64a7a9f169851p-8, 0x1.26bdbb039d862p-14,
    0x1.78ca1540d9f8bp-12, -0x1.abc0df66dfb2ap-13, 0x1.65422584a16e9p-14,
    -0x1.f4de75cf0e15fp-16, 0x1.33a85d9b21f09p-17, -0x1.9cc72eb506a79p-19,
    0x1.43f59e1f83a91p-20, -0x1.935b2188118eap-22, 0x1.1fa2de27339f5p-24,
    -0x1.549413f625dd6p-28};
};

}  // namespace kiln::detail

// 2 / pi in 64-bit words: the whole part, 0, then 1280 bits after the binary point.
#define KILN_TWO_OVER_PI \
  {0u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, \
   0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x6492eea09d1921cu, 0xfe1deb1cb129a73eu, \
   0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, \
   0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, \
   0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, \
   0xf0cfbc209af4361du}
