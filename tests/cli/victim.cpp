// A program with three ranges that ends as its first argument says: `exit N`, `segv`, `kill`,
// `sleep SECONDS`, `none` (no range at all), `open` (one that never ends), `children` (a child that
// outlives nobody), `numbered N` (and so many ranges `iter 0`, `iter 1` ...; then as `exit 0`).
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void work() {
  for (int step = 0; step < 4; ++step) {
    nvtxRangePushA("step");
    nvtxRangePushA("layer");
    usleep(500);
    nvtxRangePop();
    nvtxRangePop();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "exit";
  int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (std::strcmp(what, "none") != 0)
    work();
  if (std::strcmp(what, "numbered") == 0) {
    for (int i = 0; i < number; ++i) {
      char name[32];
      std::snprintf(name, sizeof name, "iter %d", i);
      nvtxRangePushA(name);
      nvtxRangePop();
    }
    number = 0;
  }
  std::puts("to stdout");
  std::fflush(stdout);
  std::fputs("to stderr\n", stderr);
  if (std::strcmp(what, "open") == 0)
    nvtxRangePushA("never ended");
  if (std::strcmp(what, "segv") == 0)
    raise(SIGSEGV);
  if (std::strcmp(what, "kill") == 0)
    kill(getpid(), SIGKILL);
  if (std::strcmp(what, "sleep") == 0)
    sleep(static_cast<unsigned>(number));
  if (std::strcmp(what, "children") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return number;
}
