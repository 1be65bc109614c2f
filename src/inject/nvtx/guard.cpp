#include "inject/nvtx/guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/capture.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/quiet.hpp"

namespace rangescope::inject {
namespace {

std::atomic<bool> guarded{false};
struct sigaction programs_action;  // written before the handler can run

bool has_handler(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

// What the signal would do without the guard. A fault is raised again when the handler returns, and
// then the default action ends the program.
void pass_on(int signal, siginfo_t* info, void* context) {
  const bool is_fault = info->si_code > 0;
  if (programs_action.sa_handler == SIG_IGN && !is_fault)
    return;
  if (has_handler(programs_action)) {
    const struct sigaction handler = programs_action;
    const bool once = (handler.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
    if (once)
      programs_action.sa_handler = SIG_DFL;
    if ((handler.sa_flags & SA_SIGINFO) != 0)
      return handler.sa_sigaction(signal, info, context);
    return handler.sa_handler(signal);
  }
  sigaction(signal, &programs_action, nullptr);
  if (!is_fault)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

// Puts an anonymous page where a truncated file has none any more.
bool replace_page(void* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) & ~(page_bytes() - 1);
  return mmap(reinterpret_cast<void*>(page),
              page_bytes(),
              PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
              -1,
              0) != MAP_FAILED;
}

void on_bus(int signal, siginfo_t* info, void* context) {
  const KeepErrno keep_errno;
  const bool is_ours = info->si_code == BUS_ADRERR && writer_holds(info->si_addr);
  if (!is_ours || !replace_page(info->si_addr))
    return pass_on(signal, info, context);
  if (control::holds(info->si_addr))
    return control::lost();
  capture_count(wire::native::Drop::kTruncated);  // may fault again, in the header
}

}  // namespace

void guard_maps() {
  if (guarded.exchange(true))
    return;
  if (sigaction(SIGBUS, nullptr, &programs_action) != 0)
    return;
  struct sigaction action = programs_action;
  action.sa_sigaction = on_bus;
  if (has_handler(programs_action))
    action.sa_flags &= ~static_cast<int>(SA_RESETHAND);
  else
    action.sa_flags = SA_RESTART | SA_ONSTACK;
  action.sa_flags |= SA_SIGINFO | SA_NODEFER;  // not blocked: the header's page may fault as well
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace rangescope::inject
