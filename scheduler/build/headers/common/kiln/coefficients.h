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
  // lgamma(x) / ((x - 1) (x - 2)) in t = x - 2, |t| <= 1/2
  static constexpr float kLgamma[] = {
    0x1.b0ee60p-2f, -0x1.9ae64ep-4f, 0x1.0e0c9ap-5f, -0x1.95d3e2p-7f, 0x1.479c92p-8f,
    -0x1.1309b8p-9f, 0x1.dd915cp-11f, -0x1.de9ec6p-12f, 0x1.afc618p-13f};
  // x (lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2)) in z = 1 / x^2, x >= 5 (float), 10
  static constexpr float kStirling[] = {
    0x1.555556p-4f, -0x1.6c1660p-9f, 0x1.9f57bap-11f, -0x1.189bc2p-11f};
  // (log(x) - 1 / (2 x) - digamma(x)) x^2 in z = 1 / x^2, x >= 5 (float), 10
  static constexpr float kDigamma[] = {
    0x1.555556p-4f, -0x1.11103cp-7f, 0x1.033c7cp-8f, -0x1.dd00c4p-9f};
  // I0(x) in z = x^2, 0 <= x <= 8
  static constexpr float kI0Small[] = {
    0x1.000000p+0f, 0x1.000000p-2f, 0x1.fffffep-7f, 0x1.c71c82p-12f, 0x1.c71bccp-18f,
    0x1.23490cp-24f, 0x1.02ce56p-31f, 0x1.531e4cp-39f, 0x1.4c3cc0p-47f, 0x1.234c94p-55f,
    0x1.b83220p-65f, 0x1.5d383cp-72f};
  // sqrt(x) exp(-x) I0(x) in t = 16 / x - 1, x >= 8
  static constexpr float kI0Large[] = {
    0x1.9bd428p-2f, 0x1.b8798ap-9f, 0x1.1daadcp-13f, 0x1.74d746p-17f, 0x1.8c6c62p-20f,
    0x1.85f3b2p-22f, 0x1.d123fep-24f};
  // I1(x) / x in z = x^2, 0 <= x <= 8
  static constexpr float kI1Small[] = {
    0x1.000000p-1f, 0x1.000000p-4f, 0x1.55555ep-9f, 0x1.c71bf8p-15f, 0x1.6c1a82p-21f,
    0x1.8439c8p-28f, 0x1.28acc2p-35f, 0x1.4c7024p-43f, 0x1.475236p-51f, 0x1.13a0ecp-60f,
    0x1.e07710p-68f};
  // sqrt(x) exp(-x) I1(x) in t = 16 / x - 1, x >= 8
  static constexpr float kI1Large[] = {
    0x1.8ebe78p-2f, -0x1.3f796ap-7f, -0x1.cbc5cap-13f, -0x1.f76d90p-17f, -0x1.ea5adep-20f,
    -0x1.c4a446p-22f, -0x1.0642ecp-23f};
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
  // lgamma(x) / ((x - 1) (x - 2)) in t = x - 2, |t| <= 1/2
  static constexpr double kLgamma[] = {
    0x1.b0ee6072093cep-2, -0x1.9ae6509ea10a0p-4, 0x1.0e0c9df293533p-5, -0x1.95ce223a9c32bp-7,
    0x1.47974853a9956p-8, -0x1.145121fa341a6p-9, 0x1.dfebcf8fa468ap-11, -0x1.a96a3f7a7fee8p-12,
    0x1.7ed7331ab0456p-13, -0x1.5c86deca13f0ap-14, 0x1.402f379a1bea0p-15, -0x1.2849f4abb7918p-16,
    0x1.13ddf755f9d8bp-17, -0x1.02caf69d7c8abp-18, 0x1.e683c8c6154d8p-20, -0x1.b8b776dda014ap-21,
    0x1.a103a7a312000p-22, -0x1.0f2c0333ca922p-22, 0x1.02729ae98507fp-23};
  // x (lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2)) in z = 1 / x^2, x >= 5 (float), 10
  static constexpr double kStirling[] = {
    0x1.5555555555555p-4, -0x1.6c16c16c1697cp-9, 0x1.a01a019c051efp-11, -0x1.381377985f3f3p-11,
    0x1.b94707b01d2a5p-11, -0x1.f37f7526af077p-10, 0x1.6813d0b4b0fe4p-8};
  // (log(x) - 1 / (2 x) - digamma(x)) x^2 in z = 1 / x^2, x >= 5 (float), 10
  static constexpr double kDigamma[] = {
    0x1.5555555555555p-4, -0x1.111111111078dp-7, 0x1.041040fc9a36dp-8, -0x1.1110ff75ebb66p-8,
    0x1.f0683c05c3dfdp-8, -0x1.56ac5087ce1d5p-6, 0x1.1deb63313137fp-4};
  // I0(x) in z = x^2, 0 <= x <= 8
  static constexpr double kI0Small[] = {
    0x1.0000000000000p+0, 0x1.0000000000000p-2, 0x1.0000000000002p-6, 0x1.c71c71c71c6dfp-12,
    0x1.c71c71c71cbe1p-18, 0x1.23456789a8318p-24, 0x1.02e85c08d260ap-31, 0x1.522a43f155552p-39,
    0x1.522a444603fe2p-47, 0x1.0b312ee43b7c5p-55, 0x1.5601c7e411b36p-64, 0x1.69c76363ac35fp-73,
    0x1.41b6c17a09391p-82, 0x1.e56f7ffb05c87p-92, 0x1.46a4446d3e276p-101, 0x1.31d00bad6ba1ap-111,
    0x1.20d247d00eeebp-120};
  // sqrt(x) exp(-x) I0(x) in t = 16 / x - 1, x >= 8
  static constexpr double kI0Large[] = {
    0x1.9bd428ad249a5p-2, 0x1.b87969bb93bd2p-9, 0x1.1daa72b5e22b2p-13, 0x1.75e5ee6fabb85p-17,
    0x1.8e513a7ddffecp-20, 0x1.3f49af1ca6576p-22, 0x1.7d0f0727d6a9dp-24, 0x1.51cb3832a6046p-25,
    0x1.723509510cd4ap-26, 0x1.03fa571f405c2p-27, -0x1.cfe4f8bebe7e4p-28, -0x1.ceb2c3f3c2085p-27,
    -0x1.72b4495699537p-28, 0x1.09d8aa3fc68b0p-27, 0x1.fcf3dd682ab36p-28, -0x1.0c5d8b2e86f47p-28,
    -0x1.9683a45b51615p-28, 0x1.2159f0c508719p-29, 0x1.ee943d682b9f4p-29, -0x1.3ab3b1c19a518p-30,
    -0x1.b5e3e7f99d058p-30, 0x1.1998ba2c8ef47p-31, 0x1.ec7656d43152ap-32, -0x1.4b4eae130efc2p-33,
    -0x1.03b4aa8a9e407p-34, 0x1.6e48b56608f90p-36};
  // I1(x) / x in z = x^2, 0 <= x <= 8
  static constexpr double kI1Small[] = {
    0x1.0000000000000p-1, 0x1.0000000000001p-4, 0x1.5555555555540p-9, 0x1.c71c71c71c9ecp-15,
    0x1.6c16c16c13a93p-21, 0x1.845c8a0d26f80p-28, 0x1.27e4fb73f1ad7p-35, 0x1.522a443ba2a26p-43,
    0x1.2c97552280795p-51, 0x1.ab8234c2c46fbp-60, 0x1.f17258b099a34p-69, 0x1.e290ec0d14f98p-78,
    0x1.8a6faa072cdf9p-87, 0x1.1dc3a22d140b2p-96, 0x1.1ec8e2d9b0ddbp-106, 0x1.20de50ee937a2p-115};
  // sqrt(x) exp(-x) I1(x) in t = 16 / x - 1, x >= 8
  static constexpr double kI1Large[] = {
    0x1.8ebe783a84030p-2, -0x1.3f796198ee63fp-7, -0x1.cbc54df1e894cp-13, -0x1.f89c230446f74p-17,
    -0x1.ec8e107bd7eaap-20, -0x1.7613865ea6e9ap-22, -0x1.ad8d43e5d60bep-24, -0x1.727702ec186d3p-25,
    -0x1.9191ff33370adp-26, -0x1.21f47a4eb566bp-27, 0x1.ceff3cea7c3a4p-28, 0x1.e413f0678e137p-27,
    0x1.99d190fe908dap-28, -0x1.0c96c7afcb02cp-27, -0x1.0e2bb88351649p-27, 0x1.05656ba38c1b6p-28,
    0x1.aa440cf09ce30p-28, -0x1.11c9f66d690fcp-29, -0x1.01ef463d9c576p-28, 0x1.268bd450a314cp-30,
    0x1.c7aed1ee533f7p-30, -0x1.07d06c81c1d24p-31, -0x1.fff33f3b3e75ap-32, 0x1.37bea5c8dbcccp-33,
    0x1.0ddc7620a9205p-34, -0x1.5a29b473f1663p-36};
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
