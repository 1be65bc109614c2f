#include "own_clock.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<long long> g_now_ns{0};  // 0: the kernel's

long long kernel_ns() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

}  // namespace

void worked(long long ns) {
  long long kernels = 0;
  g_now_ns.compare_exchange_strong(kernels, kernel_ns());
  const long long now_ns = g_now_ns += ns;
  while (kernel_ns() < now_ns)
    ::usleep(200);
}

extern "C" int clock_gettime(clockid_t clock, timespec* out) {
  const long long now_ns = clock == CLOCK_MONOTONIC ? g_now_ns.load() : 0;
  if (now_ns == 0)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  out->tv_sec = now_ns / 1'000'000'000;
  out->tv_nsec = now_ns % 1'000'000'000;
  return 0;
}
