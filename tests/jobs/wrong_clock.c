/* Preloaded: this machine's clocks as another host would have them. WRONG_NS is added to UTC,
 * WRONG_PPM is how much faster the monotonic clock goes, and rangescope itself believes to run on
 * WRONG_HOST. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long number(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? 0 : atoll(value);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const long done = syscall(SYS_clock_gettime, clock, out);
  if (done != 0)
    return -1;
  long long ns = out->tv_sec * 1000000000ll + out->tv_nsec;
  if (clock == CLOCK_REALTIME)
    ns += number("WRONG_NS");
  if (clock == CLOCK_MONOTONIC)
    ns += (long long)((double)ns * 1e-6 * (double)number("WRONG_PPM"));
  out->tv_sec = ns / 1000000000ll;
  out->tv_nsec = ns % 1000000000ll;
  return 0;
}

int gethostname(char* name, size_t size) {
  const char* host = getenv("WRONG_HOST");
  if (host == NULL || strcmp(program_invocation_short_name, "rangescope") != 0)
    host = "localhost";
  strncpy(name, host, size);
  return 0;
}
