// Preloaded into rangescope: the program called `late` starts only after a SIGINT came to
// rangescope, and a file says when rangescope has asked for it.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>

namespace {

/// This thread has it held back; its handler in another thread passes it on as a SIGCHLD to this
/// one.
void wait_for_interrupt() {
  constexpr timespec kTurn{0, 10'000'000};
  for (int turn = 0; turn < 30'000; ++turn) {
    sigset_t pending;
    if (::sigpending(&pending) == 0 &&
        (::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGCHLD) == 1))
      return;
    ::nanosleep(&kTurn, nullptr);
  }
}

}  // namespace

extern "C" int posix_spawnp(pid_t* pid,
                            const char* file,
                            const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes,
                            char* const argv[],
                            char* const env[]) {
  if (std::strcmp(file, "./late") == 0) {
    ::close(::open("spawning", O_WRONLY | O_CREAT, 0600));
    wait_for_interrupt();
  }
  using Spawn = decltype(&posix_spawnp);
  return reinterpret_cast<Spawn>(::dlsym(RTLD_NEXT, "posix_spawnp"))(
      pid, file, actions, attributes, argv, env);
}
