// A program that does the same work again and again, for recordings of noise: `steady STEPS [SLOW_PERCENT]` runs STEPS
// steps of six ranges, each a number of products. With SLOW_PERCENT the range `mlp` does that much more of them: a real
// slowdown of one region.
//
// A product takes 1 us of a clock of the program's own, which the injected library reads in place of the C library's: how
// busy the machine is shows in no recording. That clock never runs ahead of the kernel's.
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

long long kernel_ns(clockid_t clock) {
  timespec now{};
  ::syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

const long long g_begin_ns = kernel_ns(CLOCK_MONOTONIC);
long long g_worked_ns = 0;

void work(const char* name, int products) {
  nvtxRangePushA(name);
  g_worked_ns += products * 1000ll;
  nvtxRangePop();
}

void let_the_kernel_catch_up() {
  while (kernel_ns(CLOCK_MONOTONIC) < g_begin_ns + g_worked_ns) ::usleep(1000);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) {
  if (clock != CLOCK_MONOTONIC) return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  const long long now_ns = g_begin_ns + g_worked_ns;
  out->tv_sec = now_ns / 1'000'000'000;
  out->tv_nsec = now_ns % 1'000'000'000;
  return 0;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 40;
  const int slow = argc > 2 ? std::atoi(argv[2]) : 0;
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    work("load", 20);
    work("norm", 40);
    work("attention", 100 + step % 5);
    work("mlp", 2 * (100 + slow) + step % 3);
    work("update", 60);
    nvtxRangePop();
    let_the_kernel_catch_up();
  }
  std::printf("%lld\n", g_worked_ns);
  return 0;
}
