// A statically linked program with ranges. As in a static program with musl there is no dlopen.
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>
#include <unistd.h>

void* dlopen(const char* file, int mode) {
  (void)file;
  (void)mode;
  return NULL;
}

int main(void) {
  for (int i = 0; i < 20; ++i) {
    nvtxRangePushA("decode");
    usleep(20000);
    nvtxRangePop();
  }
  return 0;
}
