// Around an object that CuteDSL exports ahead of time (cutlass.cute.export): its code is loaded for
// the context's device at the first launch, and given back when the library is closed. C.
//
// The object calls CuteDSL's own runtime, libcute_dsl_runtime.so of the package nvidia-cutlass-dsl,
// which the library is linked against.
#pragma once

#include <stddef.h>
#include <stdint.h>

int kiln_cuda_init(void** library);
int kiln_cuda_load(void** library);
int _cudaLibraryUnload(void* library);

#define PT_EXPORT __attribute__((visibility("default")))
enum { kInvalidValue = 1 };  // CUDA_ERROR_INVALID_VALUE

static void* kiln_library = NULL;
static int kiln_is_loaded = 0;

static int kiln_load(void) {
  if (kiln_is_loaded) return 0;
  int status = kiln_library == NULL ? kiln_cuda_init(&kiln_library) : 0;
  if (status == 0) status = kiln_cuda_load(&kiln_library);
  kiln_is_loaded = status == 0;
  return status;
}

__attribute__((destructor)) static void kiln_unload(void) {
  if (kiln_library != NULL) _cudaLibraryUnload(kiln_library);
  kiln_library = NULL;
}
