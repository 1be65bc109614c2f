// A shared object with NVTX of its own, as plugins and Python extensions have; loaded and unloaded
// by the victims.
#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) void client_push(const char* name) {
  nvtxRangePushA(name);
}
extern "C" __attribute__((visibility("default"))) void client_pop() {
  nvtxRangePop();
}
