// Matrices of 8x8 16-bit elements from shared memory to the registers that a matrix instruction takes
// them from: PTX ISA, "Warp-level matrix instructions: ldmatrix". Included by kiln/staged.h within its
// namespace.

struct Matrices {
  uint32_t word[4];
};

// Four: lanes 0 to 7 name the lines of the first, the next eight those of the second, and so on. A lane
// gets two neighbouring elements of line lane / 4 of each; transposed: of column lane / 4, from two
// lines.
template <bool Transposed, typename T>
__device__ __forceinline__ Matrices load_matrices(const T* line) {
  static_assert(sizeof(T) == 2, "of 16-bit elements");
  const auto at = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) void*)line;
  Matrices found;
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(found.word[0]), "=r"(found.word[1]), "=r"(found.word[2]), "=r"(found.word[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(found.word[0]), "=r"(found.word[1]), "=r"(found.word[2]), "=r"(found.word[3])
                 : "r"(at)
                 : "memory");
  }
  return found;
}
