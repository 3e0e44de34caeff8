// Matrix instructions: shapes, types and layouts. Generated from scheduler/matrix_instructions.py
// by `python -m scheduler.build.matrix_header`: change the rows there.
//
// A is [kM, kK], B [kK, kN], D [kM, kN]; a_row(lane, value) is the row of A that a lane holds in
// one of its values, and so on. A lane's value v of D is in row v / kColumns and column
// v % kColumns of its own. A lane has the same k of kRowsA rows of A; kRepeats instructions use up
// what it reads of one of them from LDS at once.
#pragma once

namespace kiln::instruction {

// Names for f32 of which products take 10 bits of mantissa: rounded to nearest, ties away from 0,
// with the instruction (tf32), or before it, since it cuts off the others (xf32). Both are chosen
// as tf32.
struct tf32;
struct xf32;
// Names for floats of 8 bits, which operands hold by their codes.
struct f8e4m3fn;
struct f8e5m2;

// The instruction with M rows for elements of type T: kAvailable says whether this target has it.
template <typename T, int M>
struct Select {
  static constexpr bool kAvailable = false;
};

#define KILN_COORDINATE(name, expression)                                                       \
  static __device__ __forceinline__ constexpr int name([[maybe_unused]] int lane,               \
                                                       [[maybe_unused]] int value) {            \
    return expression;                                                                          \
  }

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_16x16x4f32 {
  using Element = float;
  using Accumulator = float;
  using A = float;
  using B = float;
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 4, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 4;
  static constexpr int kValuesA = 1, kValuesB = 1;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16)
  KILN_COORDINATE(b_row, lane / 16)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_32x32x2f32 {
  using Element = float;
  using Accumulator = float;
  using A = float;
  using B = float;
  using D = float __attribute__((ext_vector_type(16)));
  static constexpr int kM = 32, kN = 32, kK = 2, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 4;
  static constexpr int kValuesA = 1, kValuesB = 1;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 16, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 32)
  KILN_COORDINATE(a_column, lane / 32)
  KILN_COORDINATE(b_row, lane / 32)
  KILN_COORDINATE(b_column, lane % 32)
  KILN_COORDINATE(d_row, value / 4 * 8 + lane / 32 * 4 + value % 4)
  KILN_COORDINATE(d_column, lane % 32)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_16x16x16f16 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(4)));
  using B = _Float16 __attribute__((ext_vector_type(4)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 4, kValuesB = 4;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 4 + value)
  KILN_COORDINATE(b_row, lane / 16 * 4 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_32x32x8f16 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(4)));
  using B = _Float16 __attribute__((ext_vector_type(4)));
  using D = float __attribute__((ext_vector_type(16)));
  static constexpr int kM = 32, kN = 32, kK = 8, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 4, kValuesB = 4;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 16, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 32)
  KILN_COORDINATE(a_column, lane / 32 * 4 + value)
  KILN_COORDINATE(b_row, lane / 32 * 4 + value)
  KILN_COORDINATE(b_column, lane % 32)
  KILN_COORDINATE(d_row, value / 4 * 8 + lane / 32 * 4 + value % 4)
  KILN_COORDINATE(d_column, lane % 32)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_16x16x16bf16_1k {
  using Element = __bf16;
  using Accumulator = float;
  using A = short __attribute__((ext_vector_type(4)));
  using B = short __attribute__((ext_vector_type(4)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 4, kValuesB = 4;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 4 + value)
  KILN_COORDINATE(b_row, lane / 16 * 4 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_32x32x8bf16_1k {
  using Element = __bf16;
  using Accumulator = float;
  using A = short __attribute__((ext_vector_type(4)));
  using B = short __attribute__((ext_vector_type(4)));
  using D = float __attribute__((ext_vector_type(16)));
  static constexpr int kM = 32, kN = 32, kK = 8, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 4, kValuesB = 4;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 16, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 32)
  KILN_COORDINATE(a_column, lane / 32 * 4 + value)
  KILN_COORDINATE(b_row, lane / 32 * 4 + value)
  KILN_COORDINATE(b_column, lane % 32)
  KILN_COORDINATE(d_row, value / 4 * 8 + lane / 32 * 4 + value % 4)
  KILN_COORDINATE(d_column, lane % 32)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f64_16x16x4f64 {
  using Element = double;
  using Accumulator = double;
  using A = double;
  using B = double;
  using D = double __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 4, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 1, kValuesB = 1;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16)
  KILN_COORDINATE(b_row, lane / 16)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, value * 4 + lane / 16)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__gfx950__)

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_f32_16x16x32_f16 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(8)));
  using B = _Float16 __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 32, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_f32_32x32x16_f16 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(8)));
  using B = _Float16 __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(16)));
  static constexpr int kM = 32, kN = 32, kK = 16, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 16, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 32)
  KILN_COORDINATE(a_column, lane / 32 * 8 + value)
  KILN_COORDINATE(b_row, lane / 32 * 8 + value)
  KILN_COORDINATE(b_column, lane % 32)
  KILN_COORDINATE(d_row, value / 4 * 8 + lane / 32 * 4 + value % 4)
  KILN_COORDINATE(d_column, lane % 32)
};

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_f32_16x16x32_bf16 {
  using Element = __bf16;
  using Accumulator = float;
  using A = __bf16 __attribute__((ext_vector_type(8)));
  using B = __bf16 __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 32, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_f32_32x32x16_bf16 {
  using Element = __bf16;
  using Accumulator = float;
  using A = __bf16 __attribute__((ext_vector_type(8)));
  using B = __bf16 __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(16)));
  static constexpr int kM = 32, kN = 32, kK = 16, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 16, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 32)
  KILN_COORDINATE(a_column, lane / 32 * 8 + value)
  KILN_COORDINATE(b_row, lane / 32 * 8 + value)
  KILN_COORDINATE(b_column, lane % 32)
  KILN_COORDINATE(d_row, value / 4 * 8 + lane / 32 * 4 + value % 4)
  KILN_COORDINATE(d_column, lane % 32)
};

#endif

#if defined(__gfx942__)

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_16x16x8_xf32 {
  using Element = xf32;
  using Accumulator = float;
  using A = float __attribute__((ext_vector_type(2)));
  using B = float __attribute__((ext_vector_type(2)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 8, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 2, kValuesB = 2;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 2 + value)
  KILN_COORDINATE(b_row, lane / 16 * 2 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_f32_32x32x4_xf32 {
  using Element = xf32;
  using Accumulator = float;
  using A = float __attribute__((ext_vector_type(2)));
  using B = float __attribute__((ext_vector_type(2)));
  using D = float __attribute__((ext_vector_type(16)));
  static constexpr int kM = 32, kN = 32, kK = 4, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 2, kValuesB = 2;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 16, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 32)
  KILN_COORDINATE(a_column, lane / 32 * 2 + value)
  KILN_COORDINATE(b_row, lane / 32 * 2 + value)
  KILN_COORDINATE(b_column, lane % 32)
  KILN_COORDINATE(d_row, value / 4 * 8 + lane / 32 * 4 + value % 4)
  KILN_COORDINATE(d_column, lane % 32)
};

#endif

#if defined(__gfx90a__)

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_i32_16x16x16i8 {
  using Element = int8_t;
  using Accumulator = int32_t;
  using A = int8_t __attribute__((ext_vector_type(4)));
  using B = int8_t __attribute__((ext_vector_type(4)));
  using D = int32_t __attribute__((ext_vector_type(4)));
  using Words = int;
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 4;
  static constexpr int kValuesA = 4, kValuesB = 4;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 4 + value)
  KILN_COORDINATE(b_row, lane / 16 * 4 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__gfx942__) || defined(__gfx950__)

// AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)
struct mfma_i32_16x16x32_i8 {
  using Element = int8_t;
  using Accumulator = int32_t;
  using A = int8_t __attribute__((ext_vector_type(8)));
  using B = int8_t __attribute__((ext_vector_type(8)));
  using D = int32_t __attribute__((ext_vector_type(4)));
  using Words = long;
  static constexpr int kM = 16, kN = 16, kK = 32, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__gfx950__)

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_i32_16x16x64_i8 {
  using Element = int8_t;
  using Accumulator = int32_t;
  using A = int8_t __attribute__((ext_vector_type(16)));
  using B = int8_t __attribute__((ext_vector_type(16)));
  using D = int32_t __attribute__((ext_vector_type(4)));
  using Words = int __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 64, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 16, kValuesB = 16;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 16 + value)
  KILN_COORDINATE(b_row, lane / 16 * 16 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_f32_16x16x128_f8f6f4_fp8 {
  using Element = f8e4m3fn;
  using Accumulator = float;
  using A = uint8_t __attribute__((ext_vector_type(32)));
  using B = uint8_t __attribute__((ext_vector_type(32)));
  using D = float __attribute__((ext_vector_type(4)));
  using Words = int __attribute__((ext_vector_type(8)));
  static constexpr int kM = 16, kN = 16, kK = 128, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 32, kValuesB = 32;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, value / 16 * 64 + lane / 16 * 16 + value % 16)
  KILN_COORDINATE(b_row, value / 16 * 64 + lane / 16 * 16 + value % 16)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD CDNA4 ISA, dense matrix layouts
struct mfma_f32_16x16x128_f8f6f4_bf8 {
  using Element = f8e5m2;
  using Accumulator = float;
  using A = uint8_t __attribute__((ext_vector_type(32)));
  using B = uint8_t __attribute__((ext_vector_type(32)));
  using D = float __attribute__((ext_vector_type(4)));
  using Words = int __attribute__((ext_vector_type(8)));
  static constexpr int kM = 16, kN = 16, kK = 128, kLanes = 64;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 32, kValuesB = 32;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 4, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, value / 16 * 64 + lane / 16 * 16 + value % 16)
  KILN_COORDINATE(b_row, value / 16 * 64 + lane / 16 * 16 + value % 16)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 4 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__GFX11__)

// AMD RDNA3 ISA, 7.9
struct wmma_f32_16x16x16_f16_w32 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(16)));
  using B = _Float16 __attribute__((ext_vector_type(16)));
  using D = float __attribute__((ext_vector_type(8)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 2, kRepeats = 1;
  static constexpr int kValuesA = 16, kValuesB = 16;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, value)
  KILN_COORDINATE(b_row, value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, value * 2 + lane / 16)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD RDNA3 ISA, 7.9
struct wmma_f32_16x16x16_bf16_w32 {
  using Element = __bf16;
  using Accumulator = float;
  using A = short __attribute__((ext_vector_type(16)));
  using B = short __attribute__((ext_vector_type(16)));
  using D = float __attribute__((ext_vector_type(8)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 2, kRepeats = 1;
  static constexpr int kValuesA = 16, kValuesB = 16;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, value)
  KILN_COORDINATE(b_row, value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, value * 2 + lane / 16)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__GFX12__)

// AMD RDNA4 ISA, 7.12
struct wmma_f32_16x16x16_f16_w32_gfx12 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(8)));
  using B = _Float16 __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(8)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 8 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD RDNA4 ISA, 7.12
struct wmma_f32_16x16x16_bf16_w32_gfx12 {
  using Element = __bf16;
  using Accumulator = float;
  using A = short __attribute__((ext_vector_type(8)));
  using B = short __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(8)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 1;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 8 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__GFX11__)

// AMD RDNA3 ISA, 7.9
struct wmma_i32_16x16x16_iu8_w32 {
  using Element = int8_t;
  using Accumulator = int32_t;
  using A = int8_t __attribute__((ext_vector_type(16)));
  using B = int8_t __attribute__((ext_vector_type(16)));
  using D = int32_t __attribute__((ext_vector_type(8)));
  using Words = int __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 2, kRepeats = 1;
  static constexpr int kValuesA = 16, kValuesB = 16;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, value)
  KILN_COORDINATE(b_row, value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, value * 2 + lane / 16)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__GFX12__)

// AMD RDNA4 ISA, 7.12
struct wmma_i32_16x16x16_iu8_w32_gfx12 {
  using Element = int8_t;
  using Accumulator = int32_t;
  using A = int8_t __attribute__((ext_vector_type(8)));
  using B = int8_t __attribute__((ext_vector_type(8)));
  using D = int32_t __attribute__((ext_vector_type(8)));
  using Words = int __attribute__((ext_vector_type(2)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 8 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD RDNA4 ISA, 7.12
struct wmma_f32_16x16x16_fp8_fp8_w32_gfx12 {
  using Element = f8e4m3fn;
  using Accumulator = float;
  using A = uint8_t __attribute__((ext_vector_type(8)));
  using B = uint8_t __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(8)));
  using Words = int __attribute__((ext_vector_type(2)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 8 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

// AMD RDNA4 ISA, 7.12
struct wmma_f32_16x16x16_bf8_bf8_w32_gfx12 {
  using Element = f8e5m2;
  using Accumulator = float;
  using A = uint8_t __attribute__((ext_vector_type(8)));
  using B = uint8_t __attribute__((ext_vector_type(8)));
  using D = float __attribute__((ext_vector_type(8)));
  using Words = int __attribute__((ext_vector_type(2)));
  static constexpr int kM = 16, kN = 16, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 8, kValuesB = 8;
  static constexpr int kRowsA = 1;
  static constexpr int kValues = 8, kColumns = 1;
  KILN_COORDINATE(a_row, lane % 16)
  KILN_COORDINATE(a_column, lane / 16 * 8 + value)
  KILN_COORDINATE(b_row, lane / 16 * 8 + value)
  KILN_COORDINATE(b_column, lane % 16)
  KILN_COORDINATE(d_row, lane / 16 * 8 + value)
  KILN_COORDINATE(d_column, lane % 16)
};

#endif

#if defined(__sm_80__) || defined(__sm_86__) || defined(__sm_89__) || defined(__sm_90__) || defined(__sm_100__) || defined(__sm_120__)

// PTX ISA: matrix fragments for mma.m16n8k16 with floating point type
struct mma_m16n8k16_f32_f16 {
  using Element = _Float16;
  using Accumulator = float;
  using A = _Float16 __attribute__((ext_vector_type(8)));
  using B = _Float16 __attribute__((ext_vector_type(4)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 8, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 8, kValuesB = 4;
  static constexpr int kRowsA = 2;
  static constexpr int kValues = 4, kColumns = 2;
  KILN_COORDINATE(a_row, lane / 4 + value / 2 % 2 * 8)
  KILN_COORDINATE(a_column, lane % 4 * 2 + value % 2 + value / 4 * 8)
  KILN_COORDINATE(b_row, lane % 4 * 2 + value % 2 + value / 2 * 8)
  KILN_COORDINATE(b_column, lane / 4)
  KILN_COORDINATE(d_row, lane / 4 + value / 2 * 8)
  KILN_COORDINATE(d_column, lane % 4 * 2 + value % 2)
};

// PTX ISA: matrix fragments for mma.m16n8k16 with floating point type
struct mma_m16n8k16_f32_bf16 {
  using Element = __bf16;
  using Accumulator = float;
  using A = __bf16 __attribute__((ext_vector_type(8)));
  using B = __bf16 __attribute__((ext_vector_type(4)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 8, kK = 16, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 8, kValuesB = 4;
  static constexpr int kRowsA = 2;
  static constexpr int kValues = 4, kColumns = 2;
  KILN_COORDINATE(a_row, lane / 4 + value / 2 % 2 * 8)
  KILN_COORDINATE(a_column, lane % 4 * 2 + value % 2 + value / 4 * 8)
  KILN_COORDINATE(b_row, lane % 4 * 2 + value % 2 + value / 2 * 8)
  KILN_COORDINATE(b_column, lane / 4)
  KILN_COORDINATE(d_row, lane / 4 + value / 2 * 8)
  KILN_COORDINATE(d_column, lane % 4 * 2 + value % 2)
};

// PTX ISA: matrix fragments for mma.m16n8k32 with integer type
struct mma_m16n8k32_i32_i8 {
  using Element = int8_t;
  using Accumulator = int32_t;
  using A = int8_t __attribute__((ext_vector_type(16)));
  using B = int8_t __attribute__((ext_vector_type(8)));
  using D = int32_t __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 8, kK = 32, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 16, kValuesB = 8;
  static constexpr int kRowsA = 2;
  static constexpr int kValues = 4, kColumns = 2;
  KILN_COORDINATE(a_row, lane / 4 + value / 4 % 2 * 8)
  KILN_COORDINATE(a_column, lane % 4 * 4 + value % 4 + value / 8 * 16)
  KILN_COORDINATE(b_row, lane % 4 * 4 + value % 4 + value / 4 * 16)
  KILN_COORDINATE(b_column, lane / 4)
  KILN_COORDINATE(d_row, lane / 4 + value / 2 * 8)
  KILN_COORDINATE(d_column, lane % 4 * 2 + value % 2)
};

// PTX ISA: matrix fragments for mma.m16n8k8; cvt.rna.tf32.f32
struct mma_m16n8k8_f32_tf32 {
  using Element = tf32;
  using Accumulator = float;
  using A = float __attribute__((ext_vector_type(4)));
  using B = float __attribute__((ext_vector_type(2)));
  using D = float __attribute__((ext_vector_type(4)));
  static constexpr int kM = 16, kN = 8, kK = 8, kLanes = 32;
  static constexpr int kCopies = 1, kRepeats = 2;
  static constexpr int kValuesA = 4, kValuesB = 2;
  static constexpr int kRowsA = 2;
  static constexpr int kValues = 4, kColumns = 2;
  KILN_COORDINATE(a_row, lane / 4 + value % 2 * 8)
  KILN_COORDINATE(a_column, lane % 4 + value / 2 * 4)
  KILN_COORDINATE(b_row, lane % 4 + value * 4)
  KILN_COORDINATE(b_column, lane / 4)
  KILN_COORDINATE(d_row, lane / 4 + value / 2 * 8)
  KILN_COORDINATE(d_column, lane % 4 * 2 + value % 2)
};

#endif

// X(name, how its builtin is called): each instruction of this target

#if defined(__gfx90a__)

#define KILN_MATRIX_INSTRUCTIONS(X) \
  X(mfma_f32_16x16x4f32, 3) \
  X(mfma_f32_32x32x2f32, 3) \
  X(mfma_f32_16x16x16f16, 3) \
  X(mfma_f32_32x32x8f16, 3) \
  X(mfma_f32_16x16x16bf16_1k, 3) \
  X(mfma_f32_32x32x8bf16_1k, 3) \
  X(mfma_f64_16x16x4f64, 3) \
  X(mfma_i32_16x16x16i8, words_3)

template <>
struct Select<float, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x4f32;
};

template <>
struct Select<float, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x2f32;
};

template <>
struct Select<_Float16, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x16f16;
};

template <>
struct Select<_Float16, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x8f16;
};

template <>
struct Select<__bf16, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x16bf16_1k;
};

template <>
struct Select<__bf16, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x8bf16_1k;
};

template <>
struct Select<double, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f64_16x16x4f64;
};

template <>
struct Select<int8_t, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_i32_16x16x16i8;
};

#elif defined(__gfx942__)

#define KILN_MATRIX_INSTRUCTIONS(X) \
  X(mfma_f32_16x16x4f32, 3) \
  X(mfma_f32_32x32x2f32, 3) \
  X(mfma_f32_16x16x16f16, 3) \
  X(mfma_f32_32x32x8f16, 3) \
  X(mfma_f32_16x16x16bf16_1k, 3) \
  X(mfma_f32_32x32x8bf16_1k, 3) \
  X(mfma_f64_16x16x4f64, 3) \
  X(mfma_f32_16x16x8_xf32, 3) \
  X(mfma_f32_32x32x4_xf32, 3) \
  X(mfma_i32_16x16x32_i8, words_3)

template <>
struct Select<float, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x4f32;
};

template <>
struct Select<float, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x2f32;
};

template <>
struct Select<_Float16, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x16f16;
};

template <>
struct Select<_Float16, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x8f16;
};

template <>
struct Select<__bf16, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x16bf16_1k;
};

template <>
struct Select<__bf16, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x8bf16_1k;
};

template <>
struct Select<double, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f64_16x16x4f64;
};

template <>
struct Select<tf32, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x8_xf32;
};

template <>
struct Select<tf32, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x4_xf32;
};

template <>
struct Select<int8_t, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_i32_16x16x32_i8;
};

#elif defined(__gfx950__)

#define KILN_MATRIX_INSTRUCTIONS(X) \
  X(mfma_f32_16x16x4f32, 3) \
  X(mfma_f32_32x32x2f32, 3) \
  X(mfma_f32_16x16x16f16, 3) \
  X(mfma_f32_32x32x8f16, 3) \
  X(mfma_f32_16x16x16bf16_1k, 3) \
  X(mfma_f32_32x32x8bf16_1k, 3) \
  X(mfma_f64_16x16x4f64, 3) \
  X(mfma_f32_16x16x32_f16, 3) \
  X(mfma_f32_32x32x16_f16, 3) \
  X(mfma_f32_16x16x32_bf16, 3) \
  X(mfma_f32_32x32x16_bf16, 3) \
  X(mfma_i32_16x16x32_i8, words_3) \
  X(mfma_i32_16x16x64_i8, words_3) \
  X(mfma_f32_16x16x128_f8f6f4_fp8, fp8) \
  X(mfma_f32_16x16x128_f8f6f4_bf8, bf8)

template <>
struct Select<float, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x4f32;
};

template <>
struct Select<float, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x2f32;
};

template <>
struct Select<_Float16, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x32_f16;
};

template <>
struct Select<_Float16, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x16_f16;
};

template <>
struct Select<__bf16, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x32_bf16;
};

template <>
struct Select<__bf16, 32> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_32x32x16_bf16;
};

template <>
struct Select<double, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f64_16x16x4f64;
};

template <>
struct Select<int8_t, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_i32_16x16x64_i8;
};

template <>
struct Select<f8e4m3fn, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x128_f8f6f4_fp8;
};

template <>
struct Select<f8e5m2, 16> {
  static constexpr bool kAvailable = true;
  using type = mfma_f32_16x16x128_f8f6f4_bf8;
};

#elif defined(__GFX11__)

#define KILN_MATRIX_INSTRUCTIONS(X) \
  X(wmma_f32_16x16x16_f16_w32, 0) \
  X(wmma_f32_16x16x16_bf16_w32, 0) \
  X(wmma_i32_16x16x16_iu8_w32, iu8)

template <>
struct Select<_Float16, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_f32_16x16x16_f16_w32;
};

template <>
struct Select<__bf16, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_f32_16x16x16_bf16_w32;
};

template <>
struct Select<int8_t, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_i32_16x16x16_iu8_w32;
};

#elif defined(__GFX12__)

#define KILN_MATRIX_INSTRUCTIONS(X) \
  X(wmma_f32_16x16x16_f16_w32_gfx12, 0) \
  X(wmma_f32_16x16x16_bf16_w32_gfx12, 0) \
  X(wmma_i32_16x16x16_iu8_w32_gfx12, iu8) \
  X(wmma_f32_16x16x16_fp8_fp8_w32_gfx12, words_0) \
  X(wmma_f32_16x16x16_bf8_bf8_w32_gfx12, words_0)

template <>
struct Select<_Float16, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_f32_16x16x16_f16_w32_gfx12;
};

template <>
struct Select<__bf16, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_f32_16x16x16_bf16_w32_gfx12;
};

template <>
struct Select<int8_t, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_i32_16x16x16_iu8_w32_gfx12;
};

template <>
struct Select<f8e4m3fn, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_f32_16x16x16_fp8_fp8_w32_gfx12;
};

template <>
struct Select<f8e5m2, 16> {
  static constexpr bool kAvailable = true;
  using type = wmma_f32_16x16x16_bf8_bf8_w32_gfx12;
};

#elif defined(__sm_80__) || defined(__sm_86__) || defined(__sm_89__) || defined(__sm_90__) || defined(__sm_100__) || defined(__sm_120__)

#define KILN_MATRIX_INSTRUCTIONS(X) \
  X(mma_m16n8k16_f32_f16, 0) \
  X(mma_m16n8k16_f32_bf16, 0) \
  X(mma_m16n8k32_i32_i8, 0) \
  X(mma_m16n8k8_f32_tf32, 0)

template <>
struct Select<_Float16, 16> {
  static constexpr bool kAvailable = true;
  using type = mma_m16n8k16_f32_f16;
};

template <>
struct Select<__bf16, 16> {
  static constexpr bool kAvailable = true;
  using type = mma_m16n8k16_f32_bf16;
};

template <>
struct Select<int8_t, 16> {
  static constexpr bool kAvailable = true;
  using type = mma_m16n8k32_i32_i8;
};

template <>
struct Select<tf32, 16> {
  static constexpr bool kAvailable = true;
  using type = mma_m16n8k8_f32_tf32;
};

#endif

}  // namespace kiln::instruction
