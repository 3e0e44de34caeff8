// Launches that begin before the one before has ended (programmatic dependent launch): PTX's
// griddepcontrol on the device, an attribute of the launch on the host.
#pragma once

#define KILN_LAUNCH_NEXT(kernel, ...) \
  (kiln_begin_early(), hipLaunchKernelGGL(kernel, __VA_ARGS__))

namespace kiln {

// The next launch begins when all blocks have come here, or ended.
__device__ __forceinline__ void let_next_begin() {
  asm volatile("griddepcontrol.launch_dependents;");
}

// The pointer, once the launch before has ended and all that it wrote can be seen. It goes through
// the instruction, so that no read through it can be moved ahead of that.
template <typename T>
__device__ __forceinline__ T* after_launch_before(T* written) {
  asm volatile("griddepcontrol.wait;" : "+l"(written) : : "memory");
  return written;
}

}  // namespace kiln
