// The types of HIP's runtime that are the same on a GPU and in the emulation.
#pragma once

// Values as in ROCm's hip_runtime_api.h; the runtime's own name for any other is asked there.
enum hipError_t : int {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorLaunchFailure = 719,
  hipErrorUnknown = 999,
};

enum hipFuncAttribute : int {
  hipFuncAttributeMaxDynamicSharedMemorySize = 8,
};

typedef struct ihipStream_t* hipStream_t;
