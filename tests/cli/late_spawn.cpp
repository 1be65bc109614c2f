// Preloaded into rangescope: the program called `late` starts a moment after it was asked for, and says so before.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstring>

extern "C" int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const argv[], char* const env[]) {
  if (std::strcmp(file, "./late") == 0) {
    ::close(::open("spawning", O_WRONLY | O_CREAT, 0600));
    ::usleep(500'000);
  }
  using Spawn = decltype(&posix_spawnp);
  return reinterpret_cast<Spawn>(::dlsym(RTLD_NEXT, "posix_spawnp"))(pid, file, actions, attributes, argv, env);
}
