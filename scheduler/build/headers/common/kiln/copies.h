// Copies from memory to a block's shared memory that run while the threads go on, in groups: what
// was asked for since the last `commit_copies` is a group, and `wait_for_copies<N>` waits until all
// but the N latest groups have arrived. What a thread sees then are its own copies: others' are there
// after a barrier.
#pragma once

#include <kiln/types.h>

#if defined(__CUDA__)
#include <nvidia/copies.h>  // asynchronous
#else
namespace kiln {  // at once

// N elements, 4, 8 or 16 bytes, at addresses that are multiples of their size; zeros where not `inside`.
template <int N, typename T>
__device__ __forceinline__ void copy_async(T* shared, const T* from, bool inside) {
  *reinterpret_cast<Vec<T, N>*>(shared) = inside ? *reinterpret_cast<const Vec<T, N>*>(from) : Vec<T, N>(T(0));
}
template <int N, typename T>
__device__ __forceinline__ void copy_async_once(T* shared, const T* from, bool inside) {
  copy_async<N>(shared, from, inside);
}
__device__ __forceinline__ void commit_copies() {}
template <int N>
__device__ __forceinline__ void wait_for_copies() {}

}  // namespace kiln
#endif
