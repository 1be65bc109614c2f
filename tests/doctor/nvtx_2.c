// A library with the functions of NVTX 2, and with -DPROGRAM a program that calls them.
#include <unistd.h>

#ifdef PROGRAM
extern int nvtxRangePushA(const char* name);
extern int nvtxRangePop(void);

int main(void) {
  for (int i = 0; i < 20; ++i) {
    nvtxRangePushA("decode");
    usleep(20000);
    nvtxRangePop();
  }
  return 0;
}
#else
int nvtxRangePushA(const char* name) {
  return name == 0;
}
int nvtxRangePop(void) {
  return 0;
}
#endif
