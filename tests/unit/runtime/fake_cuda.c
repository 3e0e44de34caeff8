/* A libcuda.so.1 for tests without a GPU: host memory, a stream that is always done, and launches
 * that it hands to a library built for CPU emulation (CUDA_FAKE_KERNELS), which exports
 * `launch_<device function>`. CUDA_FAKE_GPUS names the GPUs by their compute capabilities: "90 86".
 * CUDA_FAKE_FAIL is `function=status`: that function then fails with that status.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101 };
enum { NO_BINARY_FOR_GPU = 209, NOT_FOUND = 500 };

static char names[64][256];
static int name_count, unloaded;

static int status_of(const char* function) {
  const char* wanted = getenv("CUDA_FAKE_FAIL");
  size_t length = strlen(function);
  if (wanted && strncmp(wanted, function, length) == 0 && wanted[length] == '=')
    return atoi(wanted + length + 1);
  return 0;
}
#define MAY_FAIL                            \
  do {                                      \
    int status = status_of(__func__);       \
    if (status) return status;              \
  } while (0)

/* The compute capability of a GPU, 0 for one that is not there. */
static int capability(int device) {
  const char* text = getenv("CUDA_FAKE_GPUS");
  for (int i = 0; text && *text; ++i) {
    char* end;
    long value = strtol(text, &end, 10);
    if (end == text) break;
    if (i == device) return (int)value;
    text = end;
  }
  return 0;
}

int cuInit(unsigned flags) {
  (void)flags;
  MAY_FAIL;
  return capability(0) ? 0 : NO_DEVICE;
}
int cuDriverGetVersion(int* version) { return *version = 13020, 0; }
int cuDeviceGetCount(int* count) {
  *count = 0;
  while (capability(*count)) ++*count;
  MAY_FAIL;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  MAY_FAIL;
  if (ordinal < 0 || !capability(ordinal)) return INVALID_DEVICE;
  return *device = ordinal, 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  MAY_FAIL;
  return snprintf(name, (size_t)length, "NVIDIA Fake %d", capability(device)), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  return *bytes = (size_t)80 << 30, 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  MAY_FAIL;
  switch (attribute) {
    case 10: *value = 32; break;                        /* warp size */
    case 16: *value = 132; break;                       /* multiprocessors */
    case 33: *value = device + 1; break;                /* PCI bus */
    case 75: *value = capability(device) / 10; break;
    case 76: *value = capability(device) % 10; break;
    default: *value = 0;
  }
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static char contexts[16];
  MAY_FAIL;
  return *context = &contexts[device], 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, 0; }
int cuCtxSetCurrent(void* context) {
  (void)context;
  MAY_FAIL;
  return 0;
}

int cuMemAlloc_v2(uint64_t* pointer, size_t size) {
  MAY_FAIL;
  void* memory;
  if (posix_memalign(&memory, 512, size)) return OUT_OF_MEMORY;
  return *pointer = (uint64_t)(uintptr_t)memory, 0;
}
int cuMemFree_v2(uint64_t pointer) {
  MAY_FAIL;
  return free((void*)(uintptr_t)pointer), 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) {
  MAY_FAIL;
  return memcpy((void*)(uintptr_t)to, from, size), 0;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) {
  MAY_FAIL;
  return memcpy(to, (const void*)(uintptr_t)from, size), 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void* stream) {
  (void)stream;
  MAY_FAIL;
  return memset((void*)(uintptr_t)to, value, size), 0;
}

int cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  MAY_FAIL;
  return *stream = malloc(1), 0;
}
int cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
int cuStreamSynchronize(void* stream) {
  (void)stream;
  MAY_FAIL;
  return 0;
}
int cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  MAY_FAIL;
  return *event = calloc(1, sizeof(double)), 0;
}
int cuEventDestroy_v2(void* event) { return free(event), 0; }
int cuEventRecord(void* event, void* stream) {
  (void)stream;
  MAY_FAIL;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(double*)event = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  return 0;
}
int cuEventSynchronize(void* event) {
  (void)event;
  MAY_FAIL;
  return 0;
}
int cuEventElapsedTime_v2(float* ms, void* start, void* stop) {
  MAY_FAIL;
  return *ms = (float)(*(double*)stop - *(double*)start), 0;
}

/* A cubin is an ELF file, PTX is text that ends with a zero. */
int cuModuleLoadData(void** module, const void* image) {
  static char here;
  MAY_FAIL;
  if (memcmp(image, "\177ELF", 4) != 0 && strstr(image, ".version") == NULL)
    return NO_BINARY_FOR_GPU;
  return *module = &here, 0;
}
int cuModuleUnload(void* module) {
  (void)module;
  ++unloaded;
  return 0;
}
int fake_unloaded(void) { return unloaded; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  MAY_FAIL;
  snprintf(names[name_count], sizeof names[0], "%s", name);
  return *function = names[name_count++], 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  MAY_FAIL;
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)attribute, (void)function;
  return *value = 0, 0;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** arguments, void** extra) {
  (void)stream, (void)extra;
  MAY_FAIL;
  char name[300];
  snprintf(name, sizeof name, "launch_%s", (const char*)function);
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  void* library = dlopen(getenv("CUDA_FAKE_KERNELS"), RTLD_NOW);
  int (*launch)(const uint32_t*, const uint32_t*, size_t, void**) =
      library ? (int (*)(const uint32_t*, const uint32_t*, size_t, void**))dlsym(library, name)
              : NULL;
  return launch ? launch(grid, block, shared_bytes, arguments) : NOT_FOUND;
}

/* The one before has ended already: that it may begin early changes nothing here. */
struct CUlaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};
int cuLaunchKernelEx(const struct CUlaunchConfig* config, void* function, void** arguments,
                     void** extra) {
  const unsigned *grid = config->grid, *block = config->block;
  return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                        config->shared_bytes, config->stream, arguments, extra);
}

int cuGetErrorString(int status, const char** text) {
  *text = status == OUT_OF_MEMORY ? "out of memory"
          : status == NO_DEVICE   ? "no CUDA-capable device is detected"
          : status == 803         ? "system has unsupported display driver / cuda driver combination"
          : status < 1000         ? "something went wrong"
                                  : NULL;
  return *text ? 0 : INVALID_VALUE;
}
int cuGetErrorName(int status, const char** text) {
  return *text = status == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR", 0;
}

/* How the bindings find the rest: the newest version of a function. CUDA_FAKE_LACKS names one that
 * this driver is too old for. */
int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                        int* found) {
  (void)version, (void)flags;
  char newest[128];
  snprintf(newest, sizeof newest, "%s_v2", symbol);
  const char* lacking = getenv("CUDA_FAKE_LACKS");
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = NULL;
  if (!lacking || strcmp(lacking, symbol) != 0) {
    *function = dlsym(self, newest);
    if (*function == NULL) *function = dlsym(self, symbol);
  }
  if (found) *found = *function ? 0 : 1;
  return *function ? 0 : NOT_FOUND;
}
