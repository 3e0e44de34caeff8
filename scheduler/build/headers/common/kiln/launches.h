// A kernel's launches that follow each other. Where the target can, the next one's blocks are placed
// while the last of the one before are still at work: what is between two launches is then as long
// as a wait. A launch made so reads what the one before wrote through the pointer that
// `after_launch_before` gives, and through no other.
#pragma once

#include <kiln/types.h>

#if defined(__CUDA__) && KILN_SM >= 90
#include <nvidia/launches.h>
#else
#define KILN_LAUNCH_NEXT(...) hipLaunchKernelGGL(__VA_ARGS__)  // in order
namespace kiln {

__device__ __forceinline__ void let_next_begin() {}
template <typename T>
__device__ __forceinline__ T* after_launch_before(T* written) {
  return written;
}

}  // namespace kiln
#endif
