#include "profile/worker.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/signals.hpp"

namespace rangescope::profile {

Worker::~Worker() {
  if (done_ != nullptr) ::munmap(done_, sizeof *done_);
}

base::Result<void> Worker::go_on_in_child() {
  if (std::exchange(forked_, true)) return {};
  void* shared = ::mmap(nullptr, sizeof *done_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {};
  done_ = static_cast<int*>(shared);
  std::fflush(nullptr);  // what is buffered would be written twice
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return {};
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    return {};
  }
  const auto ended = base::run({.running = child, .leave_group = true, .forward_signals = true});
  if (!ended) return tl::make_unexpected(ended.error());
  if (__atomic_load_n(done_, __ATOMIC_ACQUIRE) != 0) {
    if (ended->signal) base::die_by(*ended->signal);
    ::_exit(*ended->exit_code);
  }
  const int signal = ended->signal.value_or(0);
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) stopped_ = *ended;
  return base::fail(base::Code::kInternal,
                    "what was captured was not read to the end: the reader ended by " + base::describe(*ended) +
                        (signal == SIGKILL ? ", as where memory runs out" : ""),
                    {}, stopped_ ? "Read it later: rangescope report" : "Read it with more memory: rangescope report");
}

void Worker::done() {
  if (done_ != nullptr) __atomic_store_n(done_, 1, __ATOMIC_RELEASE);
}

}  // namespace rangescope::profile
