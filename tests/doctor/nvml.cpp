// A stand-in for libnvidia-ml.so.1: two GPUs of a machine that the variable STANDIN_NVML describes.
//
//   ok        driver 580.159.03, CUDA 13.0, two H200 whose clocks run free
//   busy      MIG on the first, the power cap holding the second, whose application clock was
//   changed too working   the second GPU is busy for ever; fading: for a second mismatch  nvmlInit
//   answers NVML_ERROR_LIB_RM_VERSION_MISMATCH
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

bool is(std::string_view what) {
  const char* said = std::getenv("STANDIN_NVML");
  return said != nullptr && what == said;
}

char g_devices[2];

unsigned index_of(void* device) {
  return device == &g_devices[1] ? 1 : 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return is("mismatch") ? 18 : 0;
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 18 ? "Driver/library version mismatch" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.159.03");
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &g_devices[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "NVIDIA H200");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "GPU-%u0000000-aaaa", index_of(device));
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  static int left = 4;
  const bool busy = index_of(device) == 1 && (is("working") || (is("fading") && left-- > 0));
  gpu_and_memory[0] = busy ? 37 : 0;
  gpu_and_memory[1] = 0;
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
  *now = *pending = is("busy") && index_of(device) == 0 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = is("busy") && index_of(device) == 1 ? 0x4 : 0x1;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, unsigned, unsigned* mhz) {
  *mhz = 1500;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
int nvmlDeviceGetApplicationsClock(void* device, unsigned, unsigned* mhz) {
  *mhz = is("busy") && index_of(device) == 1 ? 1200 : 1980;
  return 0;
}
int nvmlDeviceGetDefaultApplicationsClock(void*, unsigned, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
}
