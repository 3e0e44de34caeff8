// HIP for the host: the CPU emulation. The same kernel source as for AMD GPUs compiles against it
// into a shared library that runs the kernel's blocks on the host's threads.
//
// The build defines KILN_WAVE_SIZE and the macros of the target that is emulated (__gfx942__ ...);
// KILN_CPU says that this is the emulation. One translation unit per library.
#pragma once

#define KILN_CPU 1

// As for the GPU: a product and the sum it goes into may be rounded once.
#pragma clang fp contract(fast)

// clang-format off: each builds on those before it
#include "../emulation/bfloat.h"
#include "../emulation/types.h"
#include "../emulation/fiber.h"
#include "../emulation/block.h"
#include "../emulation/launch.h"
#include "../emulation/wave.h"
#include "../emulation/atomic.h"
#include "../emulation/matrix.h"
