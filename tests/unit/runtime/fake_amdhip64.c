/* A libamdhip64.so for tests without a GPU: host memory, a stream that is always done, and
 * launches that it hands to a library built for CPU emulation (FAKE_HIP_KERNELS), which exports
 * `launch_<device function>`. FAKE_HIP_PROPERTIES is a file with a hipDeviceProp_t for each GPU;
 * FAKE_HIP_FAIL is `function=status`: that function then fails with that status.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  uint32_t x, y, z;
} dim3;

typedef struct {
  const void* host;
  char name[256];
} function_t;

static function_t functions[64];
static int function_count, current_device, last_error, unregistered;
static struct {
  dim3 grid, block;
  size_t lds;
  void* stream;
} configuration;

static int status_of(const char* function) {
  const char* wanted = getenv("FAKE_HIP_FAIL");
  size_t length = strlen(function);
  if (wanted && strncmp(wanted, function, length) == 0 && wanted[length] == '=')
    return atoi(wanted + length + 1);
  return 0;
}
#define MAY_FAIL                                   \
  do {                                             \
    int status = status_of(__func__);              \
    if (status) return last_error = status;        \
  } while (0)

static long property_bytes(void) {
  const char* path = getenv("FAKE_HIP_PROPERTIES");
  FILE* file = path ? fopen(path, "rb") : NULL;
  if (!file) return 0;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  fclose(file);
  return size;
}

#define PROPERTY_BYTES 1472

int hipGetDeviceCount(int* count) {
  *count = (int)(property_bytes() / PROPERTY_BYTES);
  MAY_FAIL;
  return *count ? 0 : 100;
}
int hipSetDevice(int device) {
  MAY_FAIL;
  if (device < 0 || device >= property_bytes() / PROPERTY_BYTES) return 101;
  current_device = device;
  return 0;
}
int hipGetDevice(int* device) { return *device = current_device, 0; }
int hipGetDevicePropertiesR0600(void* properties, int device) {
  MAY_FAIL;
  if (property_bytes() == 0) return 100;
  if (device < 0 || device >= property_bytes() / PROPERTY_BYTES) return 101;
  FILE* file = fopen(getenv("FAKE_HIP_PROPERTIES"), "rb");
  fseek(file, (long)device * PROPERTY_BYTES, SEEK_SET);
  size_t read = fread(properties, 1, PROPERTY_BYTES, file);
  fclose(file);
  return read == PROPERTY_BYTES ? 0 : 1;
}
int hipRuntimeGetVersion(int* version) { return *version = 71526043, 0; }

int hipMalloc(void** pointer, size_t size) {
  MAY_FAIL;
  return posix_memalign(pointer, 256, size) ? 2 : 0;
}
int hipFree(void* pointer) {
  MAY_FAIL;
  return free(pointer), 0;
}
int hipMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream) {
  (void)stream;
  MAY_FAIL;
  if (kind != 1 && kind != 2) return 21; /* host to device, device to host */
  return memcpy(to, from, size), 0;
}
int hipMemsetAsync(void* to, int value, size_t size, void* stream) {
  (void)stream;
  MAY_FAIL;
  return memset(to, value, size), 0;
}
int hipStreamCreate(void** stream) {
  MAY_FAIL;
  return *stream = malloc(1), 0;
}
int hipStreamDestroy(void* stream) { return free(stream), 0; }
int hipStreamSynchronize(void* stream) {
  (void)stream;
  MAY_FAIL;
  return 0;
}
int hipEventCreate(void** event) {
  MAY_FAIL;
  return *event = calloc(1, sizeof(double)), 0;
}
int hipEventDestroy(void* event) { return free(event), 0; }
int hipEventRecord(void* event, void* stream) {
  (void)stream;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(double*)event = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
  return 0;
}
int hipEventSynchronize(void* event) {
  (void)event;
  return 0;
}
int hipEventElapsedTime(float* ms, void* start, void* stop) {
  MAY_FAIL;
  return *ms = (float)(*(double*)stop - *(double*)start), 0;
}

const char* hipGetErrorString(int status) {
  return status == 2     ? "out of memory"
         : status == 700 ? "an illegal memory access was encountered"
                         : "something went wrong";
}
const char* hipGetErrorName(int status) { return status == 2 ? "hipErrorOutOfMemory" : "hipError"; }
int hipGetLastError(void) {
  int error = last_error;
  return last_error = 0, error;
}
int hipPeekAtLastError(void) { return last_error; }

void** __hipRegisterFatBinary(const void* wrapper) {
  /* HIPF, version 1, and the bundle that the linker put there */
  const uint32_t* words = wrapper;
  const char* bundle = *(const char* const*)(words + 2);
  if (words[0] != 0x48495046 || memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24) != 0) abort();
  static void* handle;
  return &handle;
}
void __hipRegisterFunction(void** module, const void* host, char* device, const char* name,
                           unsigned limit, void* tid, void* bid, dim3* block, dim3* grid, int* w) {
  (void)module, (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)w;
  functions[function_count].host = host;
  snprintf(functions[function_count++].name, 256, "%s", name);
}
void __hipUnregisterFatBinary(void** module) {
  (void)module;
  ++unregistered;
}
int fake_unregistered(void) { return unregistered; }

int __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds, void* stream) {
  configuration.grid = grid, configuration.block = block;
  configuration.lds = lds, configuration.stream = stream;
  return 0;
}
int __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds, void** stream) {
  *grid = configuration.grid, *block = configuration.block;
  *lds = configuration.lds, *stream = configuration.stream;
  return 0;
}
int hipLaunchKernel(const void* host, dim3 grid, dim3 block, void** args, size_t lds,
                    void* stream) {
  (void)stream;
  MAY_FAIL;
  for (int i = 0; i < function_count; ++i) {
    if (functions[i].host != host) continue;
    char name[300];
    snprintf(name, sizeof name, "launch_%s", functions[i].name);
    void* library = dlopen(getenv("FAKE_HIP_KERNELS"), RTLD_NOW);
    int (*launch)(const uint32_t*, const uint32_t*, size_t, void**) =
        library ? (int (*)(const uint32_t*, const uint32_t*, size_t, void**))dlsym(library, name)
                : NULL;
    return last_error = launch ? launch(&grid.x, &block.x, lds, args) : 98;
  }
  return last_error = 98; /* hipErrorInvalidDeviceFunction */
}
