// NVIDIA's matrix instructions, by inline PTX: one function for each row of
// kiln/matrix_instructions.h. Included by kiln/mma.h within its namespace.
//
// PTX ISA, "Warp-level matrix instructions: mma". Operands travel as words of two elements, or four.
#define KILN_MMA_M16N8K16(name, types)                                                             \
  __device__ __forceinline__ instruction::name::D multiply_add(                                    \
      instruction::name, instruction::name::A a, instruction::name::B b, instruction::name::D c) { \
    struct WordsA {                                                                                \
      uint32_t word[4];                                                                            \
    } x = __builtin_bit_cast(WordsA, a);                                                           \
    struct WordsB {                                                                                \
      uint32_t word[2];                                                                            \
    } y = __builtin_bit_cast(WordsB, b);                                                           \
    float d0, d1, d2, d3;                                                                          \
    asm("mma.sync.aligned.m16n8k16.row.col." types                                                 \
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                     \
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)                                                   \
        : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(y.word[0]),          \
          "r"(y.word[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));                             \
    return instruction::name::D{d0, d1, d2, d3};                                                   \
  }

// f32 in the format of tf32 (which only the GPU knows): rounded to nearest, ties away from zero.
__device__ __forceinline__ uint32_t to_tf32(float value) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

#define KILN_MMA_TF32(name)                                                                        \
  __device__ __forceinline__ instruction::name::D multiply_add(                                    \
      instruction::name, instruction::name::A a, instruction::name::B b, instruction::name::D c) { \
    float d0, d1, d2, d3;                                                                          \
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"                                       \
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                     \
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)                                                   \
        : "r"(to_tf32(a[0])), "r"(to_tf32(a[1])), "r"(to_tf32(a[2])), "r"(to_tf32(a[3])),          \
          "r"(to_tf32(b[0])), "r"(to_tf32(b[1])), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));     \
    return instruction::name::D{d0, d1, d2, d3};                                                   \
  }
#define KILN_MMA_M16N8K32(name, types)                                                             \
  __device__ __forceinline__ instruction::name::D multiply_add(                                    \
      instruction::name, instruction::name::A a, instruction::name::B b, instruction::name::D c) { \
    struct WordsA {                                                                                \
      uint32_t word[4];                                                                            \
    } x = __builtin_bit_cast(WordsA, a);                                                           \
    struct WordsB {                                                                                \
      uint32_t word[2];                                                                            \
    } y = __builtin_bit_cast(WordsB, b);                                                           \
    int d0, d1, d2, d3;                                                                            \
    asm("mma.sync.aligned.m16n8k32.row.col." types                                                 \
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                     \
        : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)                                                   \
        : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(y.word[0]),          \
          "r"(y.word[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));                             \
    return instruction::name::D{d0, d1, d2, d3};                                                   \
  }
#if defined(KILN_MATRIX_INSTRUCTIONS)
KILN_MMA_M16N8K16(mma_m16n8k16_f32_f16, "f32.f16.f16.f32")
KILN_MMA_M16N8K16(mma_m16n8k16_f32_bf16, "f32.bf16.bf16.f32")
KILN_MMA_M16N8K32(mma_m16n8k32_i32_i8, "s32.s8.s8.s32")
KILN_MMA_TF32(mma_m16n8k8_f32_tf32)
#endif
#undef KILN_MMA_M16N8K32
#undef KILN_MMA_TF32
#undef KILN_MMA_M16N8K16
