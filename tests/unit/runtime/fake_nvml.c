/* A libnvidia-ml.so.1 for tests: one GPU at 0000:01:00.0, whose clock its power limit holds down.
 * CUDA_FAKE_NVML_FAIL is `function=status`, as in fake_cuda.c.
 */
#include <stdlib.h>
#include <string.h>

static int status_of(const char* function) {
  const char* wanted = getenv("CUDA_FAKE_NVML_FAIL");
  size_t length = strlen(function);
  if (wanted && strncmp(wanted, function, length) == 0 && wanted[length] == '=')
    return atoi(wanted + length + 1);
  return 0;
}

int nvmlInit_v2(void) { return status_of(__func__); }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int status) {
  return status == 3 ? "Not Supported" : "it went wrong";
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return strncpy(version, "595.71.05", length), status_of(__func__);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  static char here;
  if (strcmp(pci, "0000:01:00.0") != 0) return 6; /* NVML_ERROR_NOT_FOUND */
  return *device = &here, status_of(__func__);
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  (void)device;
  return *mhz = type == 1 ? 1500 : 2600, status_of(__func__);
}
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  (void)device;
  return *reasons = 0x4, status_of(__func__);
}
