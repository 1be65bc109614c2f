#include "profile/worker.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/signals.hpp"

namespace rangescope::profile {
namespace {

// Blocks of the main heap, and one behind them that stays: as the heap's end they would go back to
// the kernel, which may give none again.
constexpr std::size_t kBlock = std::size_t{64} << 10;
std::array<void*, 65> g_reserve{};

void free_reserve() {
  for (std::size_t i = 0; i + 1 < g_reserve.size(); ++i)
    std::free(std::exchange(g_reserve[i], nullptr));
}

void on_no_memory() {
  const bool left = g_reserve.front() != nullptr &&
                    ::syscall(SYS_gettid) == ::getpid();  // not in threads that run meanwhile
  if (!left)
    throw std::bad_alloc();
  free_reserve();
}

// From now on somebody who reads our output may leave (`| head`): what is written to him fails, and
// the run is concluded as ever. A handler, not SIG_IGN, which what we start would inherit.
void outlive_readers() {
  struct sigaction old {};
  ::sigaction(SIGPIPE, nullptr, &old);
  if ((old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, [](int) {});
}

}  // namespace

Worker::~Worker() {
  std::set_new_handler(nullptr);
  free_reserve();
  if (done_ != nullptr)
    ::munmap(done_, sizeof *done_);
}

Worker::Worker() {
  for (void*& block : g_reserve)
    if (block == nullptr)
      block = std::malloc(kBlock);
  std::set_new_handler(on_no_memory);
  void* shared =
      ::mmap(nullptr, sizeof *done_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED)
    done_ = static_cast<int*>(shared);
}

void Worker::out_of_memory() {
  free_reserve();
}

bool Worker::has_reserve() {
  return std::find(g_reserve.begin(), g_reserve.end(), nullptr) == g_reserve.end();
}

base::Result<void> Worker::go_on_in_child() {
  if (std::exchange(forked_, true))
    return failed_;
  if (done_ == nullptr)
    return {};
  std::fflush(nullptr);  // what is buffered would be written twice
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    outlive_readers();
  if (child < 0)
    return {};
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(1);
    std::set_new_handler(nullptr);
    outlive_readers();
    return {};
  }
  const auto ended = base::run({.running = child, .leave_group = true, .forward_signals = true});
  if (!ended)
    return failed_ = tl::make_unexpected(ended.error());
  if (__atomic_load_n(done_, __ATOMIC_ACQUIRE) != 0) {
    if (ended->signal)
      base::die_by(*ended->signal);
    ::_exit(*ended->exit_code);
  }
  const int signal = ended->signal.value_or(0);
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
    stopped_ = *ended;
  std::string problem =
      "the capture was not read to its end: the reader ended by " + base::describe(*ended);
  if (signal == SIGKILL)
    problem += ", probably for lack of memory";
  std::string hint = "Read it with more memory: rangescope report";
  if (stopped_)
    hint = "Read it later: rangescope report";
  failed_ = base::fail(base::Code::kInternal, std::move(problem), {}, std::move(hint));
  return failed_;
}

void Worker::done() {
  if (done_ != nullptr)
    __atomic_store_n(done_, 1, __ATOMIC_RELEASE);
}

}  // namespace rangescope::profile
