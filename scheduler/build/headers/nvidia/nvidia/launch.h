// What the compiler's launches call, over the driver's own functions (libcuda), which whoever
// loads the library has opened: no CUDA runtime is needed. One module a library and context.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {
// cuda.h: CUresult, CUmodule and so on; a status is 0 or the driver's own number for it.
int cuModuleLoadData(void** module, const void* image);
int cuModuleUnload(void* module);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuFuncSetAttribute(void* function, int attribute, int value);
int cuFuncGetAttribute(int* value, int attribute, void* function);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** arguments, void** extra);
#if KILN_SM >= 90
struct CUlaunchConfig;
int cuLaunchKernelEx(const CUlaunchConfig* config, void* function, void** arguments, void** extra);
#endif
int cuMemsetD8Async(uint64_t destination, unsigned char value, size_t bytes, void* stream);

void* malloc(size_t bytes);
void free(void* memory);

__attribute__((weak, visibility("hidden"))) void* __dso_handle = &__dso_handle;
int __cxa_atexit(void (*function)(void*), void* argument, void* library);
void __cxa_finalize(void* library);
__attribute__((weak, visibility("hidden"))) int atexit(void (*function)(void)) {
  return __cxa_atexit(reinterpret_cast<void (*)(void*)>(function), nullptr, &__dso_handle);
}
}

#if KILN_SM >= 90
// cuda.h's, of which one attribute is given: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
struct CUlaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int allowed;
  };
};
struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void* stream;
  CUlaunchAttribute* attributes;
  unsigned attribute_count;
};
#endif

namespace kiln_driver {

constexpr int kMaxDynamicSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_...
constexpr unsigned kStaticSharedLimit = 48 * 1024;

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

// The library's kernels in a list, however many there are.
struct Kernel {
  const void* stub;
  const char* name;
  void* function;
  Kernel* next;
};

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  hipStream_t stream;
};

static const void* image = nullptr;
static void* module = nullptr;
static Kernel* kernels = nullptr;
static bool incomplete = false;  // there was no memory for one of them
static hipError_t last_error = hipSuccess;
static thread_local Configuration configuration;
static thread_local bool begins_early = false;

static hipError_t failed(int status) { return last_error = hipError_t(status); }

static int launch(void* function, const Configuration& at, void** arguments, bool early) {
#if KILN_SM >= 90
  if (early) {
    CUlaunchAttribute attribute = {6, 0, {}};
    attribute.allowed = 1;
    const CUlaunchConfig config = {at.grid.x,  at.grid.y,  at.grid.z,
                                   at.block.x, at.block.y, at.block.z,
                                   unsigned(at.shared_bytes), at.stream, &attribute, 1};
    return cuLaunchKernelEx(&config, function, arguments, nullptr);
  }
#endif
  return cuLaunchKernel(function, at.grid.x, at.grid.y, at.grid.z, at.block.x, at.block.y,
                        at.block.z, unsigned(at.shared_bytes), at.stream, arguments, nullptr);
}

// The kernel of a stub, loaded at its first launch.
static hipError_t find(const void* stub, void*& function) {
  for (Kernel* kernel = kernels; kernel != nullptr; kernel = kernel->next) {
    if (kernel->stub != stub) continue;
    if (kernel->function == nullptr) {
      int status = module == nullptr ? cuModuleLoadData(&module, image) : 0;
      if (status == 0) status = cuModuleGetFunction(&kernel->function, module, kernel->name);
      if (status != 0) return hipError_t(status);
    }
    function = kernel->function;
    return hipSuccess;
  }
  return incomplete ? hipError_t(kOutOfMemory) : hipErrorInvalidValue;
}

// At load, where nothing can be reported: a launch says that memory was short.
static void add(const void* stub, const char* name) {
  auto* kernel = static_cast<Kernel*>(malloc(sizeof(Kernel)));
  if (kernel == nullptr) {
    incomplete = true;
    return;
  }
  *kernel = {stub, name, nullptr, kernels};
  kernels = kernel;
}

static void forget_all() {
  while (kernels != nullptr) {
    Kernel* next = kernels->next;
    free(kernels);
    kernels = next;
  }
}

}  // namespace kiln_driver

#define KILN_HIDDEN __attribute__((visibility("hidden"), used))

extern "C" {
KILN_HIDDEN void** __cudaRegisterFatBinary(const void* wrapper) {
  // {magic and version (4 bytes each), binary, …}: a cubin, or PTX that ends with a zero.
  kiln_driver::image = reinterpret_cast<const void* const*>(wrapper)[1];
  return &kiln_driver::module;
}
KILN_HIDDEN void __cudaRegisterFatBinaryEnd(void**) {}
KILN_HIDDEN void __cudaUnregisterFatBinary(void**) {
  if (kiln_driver::module != nullptr) cuModuleUnload(kiln_driver::module);
  kiln_driver::module = nullptr;
  kiln_driver::forget_all();
}
KILN_HIDDEN void __cudaRegisterFunction(void**, const void* stub, char*, const char* name, unsigned,
                                       void*, void*, void*, void*, int*) {
  kiln_driver::add(stub, name);
}
KILN_HIDDEN unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                  hipStream_t stream) {
  kiln_driver::configuration = {grid, block, shared_bytes, stream};
  return 0;
}
KILN_HIDDEN void kiln_begin_early(void) { kiln_driver::begins_early = true; }
KILN_HIDDEN hipError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                                 hipStream_t* stream) {
  *grid = kiln_driver::configuration.grid;
  *block = kiln_driver::configuration.block;
  *shared_bytes = kiln_driver::configuration.shared_bytes;
  *stream = kiln_driver::configuration.stream;
  return hipSuccess;
}
KILN_HIDDEN hipError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                                       size_t shared_bytes, hipStream_t stream) {
  void* function = nullptr;
  const bool early = kiln_driver::begins_early;
  kiln_driver::begins_early = false;  // of this launch alone, whatever becomes of it
  if (hipError_t status = kiln_driver::find(stub, function)) return kiln_driver::failed(status);
  if (shared_bytes > kiln_driver::kStaticSharedLimit) {
    int status = cuFuncSetAttribute(function, kiln_driver::kMaxDynamicSharedBytes, int(shared_bytes));
    if (status != 0) return kiln_driver::failed(status);
  }
  int status = kiln_driver::launch(function, {grid, block, shared_bytes, stream}, arguments, early);
  return status == 0 ? hipSuccess : kiln_driver::failed(status);
}
KILN_HIDDEN hipError_t hipGetLastError(void) {
  hipError_t status = kiln_driver::last_error;
  kiln_driver::last_error = hipSuccess;
  return status;
}
KILN_HIDDEN hipError_t hipPeekAtLastError(void) { return kiln_driver::last_error; }
KILN_HIDDEN hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  int status = cuMemsetD8Async(reinterpret_cast<uint64_t>(to), (unsigned char)value, bytes, stream);
  return status == 0 ? hipSuccess : kiln_driver::failed(status);
}
}

// Unregisters the code when the library is closed, rather than at exit from unmapped memory.
__attribute__((destructor)) static void kiln_unload() { __cxa_finalize(&__dso_handle); }
