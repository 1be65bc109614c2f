// rangescope: what each NVTX range of a program costs, and why.
//
//   profile   run a program and report           cmd_profile.cpp
//   report    report on what was recorded        cmd_report.cpp
//   runs      list, show, prune, verify runs     cmd_runs.cpp
//   help      this, man pages, completion        cmd_help.cpp
//
// app.cpp finds the subcommand and gives it its options; every other command is one word in its
// list.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string_view>

#include "base/signals.hpp"
#include "cli/app.hpp"
#include "sample/gpu/helper.hpp"

namespace {

constexpr std::size_t kStack = 8 << 20;

// Where the user's limit on stacks (ulimit -s 64) is too small for us and may not be raised, all of
// us runs on stacks of our own. The limit stays as it is: it is the program's.
int run_on_own_stack(int argc, char** argv) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, kStack) == 0)
    (void)pthread_setattr_default_np(&attributes);
  static ucontext_t here, there;
  static int result;
  void* const stack = mmap(nullptr,
                           kStack,
                           PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE,
                           -1,
                           0);
  if (stack == MAP_FAILED || getcontext(&there) != 0)
    return rangescope::cli::run_app(argc, argv);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = kStack;
  there.uc_link = &here;
  static int count;
  static char** words;
  count = argc;
  words = argv;
  makecontext(
      &there, [] { result = rangescope::cli::run_app(count, words); }, 0);
  swapcontext(&here, &there);
  return result;
}

// Where the memory left does not hold an exception either, the C++ library terminates instead of
// throwing std::bad_alloc. Any other reason to terminate is a defect of ours and aborts.
[[noreturn]] void end_without_memory() {
  constexpr std::size_t kLikeAnException = 1024;
  if (std::current_exception() != nullptr || std::malloc(kLikeAnException) != nullptr)
    std::abort();
  constexpr std::string_view kMessage =
      "rangescope: error: out of memory\n"
      "rangescope: hint: Raise the limit on memory: ulimit -v unlimited\n";
  (void)!write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(static_cast<int>(rangescope::base::Code::kInternal));
}

void say_when_memory_ends() {
  std::set_terminate(end_without_memory);
}

/// Before the initializers of the shared libraries, which take memory too.
using Initializer = void (*)();
[[gnu::section(".preinit_array"), gnu::used]] const Initializer kFirst = say_when_memory_ends;

}  // namespace

int main(int argc, char** argv) {
  rangescope::base::outlive_file_limit();
  if (argc > 1 && std::string_view(argv[1]) == rangescope::sample::kHelperWord)
    return rangescope::sample::run_helper({argv + 2, argv + argc});
  rlimit stack{};
  const bool is_small = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kStack / 4;
  if (is_small)
    return run_on_own_stack(argc, argv);
  return rangescope::cli::run_app(argc, argv);
}
