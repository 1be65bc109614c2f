// A program that does the same work again and again, for recordings of noise: `steady STEPS
// [SLOW_PERCENT]` runs STEPS steps of six ranges, each a number of products that take 1 us of the
// program's own clock. With SLOW_PERCENT the range `mlp` does that much more of them: a real
// slowdown of one region.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

#include "own_clock.hpp"

namespace {

void range(const char* name, int products) {
  nvtxRangePushA(name);
  worked(products * 1000ll);
  nvtxRangePop();
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 40;
  const int slow = argc > 2 ? std::atoi(argv[2]) : 0;
  worked(0);
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    range("load", 20);
    range("norm", 40);
    range("attention", 100 + step % 5);
    range("mlp", 2 * (100 + slow) + step % 3);
    range("update", 60);
    nvtxRangePop();
  }
  std::printf("%d\n", steps);
  return 0;
}
