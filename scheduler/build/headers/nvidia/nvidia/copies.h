// Asynchronous copies to shared memory, since sm_80: PTX ISA, "Data movement and conversion
// instructions: cp.async". Included by kiln/copies.h.

namespace kiln {

// N elements, 4, 8 or 16 bytes, at addresses that are multiples of their size. Where not `inside`
// nothing is read and zeros are stored. 16 bytes do not go through L1: other threads do not want them.
template <int N, typename T>
__device__ __forceinline__ void copy_async(T* shared, const T* from, bool inside) {
  constexpr int bytes = N * sizeof(T);
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  auto* const to = (__attribute__((address_space(3))) void*)shared;
  auto* const source = (const __attribute__((address_space(1))) void*)from;
  const int wanted = inside ? bytes : 0;
  if constexpr (bytes == 16) {
    __nvvm_cp_async_cg_shared_global_16(to, source, wanted);
  } else if constexpr (bytes == 8) {
    __nvvm_cp_async_ca_shared_global_8(to, source, wanted);
  } else {
    __nvvm_cp_async_ca_shared_global_4(to, source, wanted);
  }
}
// The same of what no other block reads and nobody soon again: it is the first that leaves L2.
template <int N, typename T>
__device__ __forceinline__ void copy_async_once(T* shared, const T* from, bool inside) {
  if constexpr (N * sizeof(T) == 16) {
    const auto to = (uint32_t)(uintptr_t)(__attribute__((address_space(3))) void*)shared;
    const auto source = (uint64_t)(uintptr_t)(const __attribute__((address_space(1))) void*)from;
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
                 :
                 : "r"(to), "l"(source), "r"(inside ? 16 : 0), "l"(policy)
                 : "memory");
  } else {
    copy_async<N>(shared, from, inside);
  }
}
__device__ __forceinline__ void commit_copies() { __nvvm_cp_async_commit_group(); }
template <int N>
__device__ __forceinline__ void wait_for_copies() {
  __nvvm_cp_async_wait_group(N);
}

}  // namespace kiln
