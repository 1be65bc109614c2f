#include "inject/nvtx/guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "inject/nvtx/capture.hpp"
#include "inject/nvtx/quiet.hpp"

namespace rangescope::inject {
namespace {

std::atomic<bool> guarded{false};
struct sigaction before;  // written before the handler can run

// As without the guard. A fault comes again when the handler returns, and meets the default action then.
void pass_on(int signal, siginfo_t* info, void* context) {
  const bool fault = info->si_code > 0;
  if (before.sa_handler == SIG_IGN && !fault) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    const struct sigaction handler = before;
    if ((handler.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) before.sa_handler = SIG_DFL;
    if ((handler.sa_flags & SA_SIGINFO) != 0) return handler.sa_sigaction(signal, info, context);
    return handler.sa_handler(signal);
  }
  sigaction(signal, &before, nullptr);
  if (!fault) syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

void on_bus(int signal, siginfo_t* info, void* context) {
  const KeepErrno keep_errno;
  const bool ours = info->si_code == BUS_ADRERR && writer_holds(info->si_addr);
  void* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~std::uintptr_t{4095});
  if (!ours || mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return pass_on(signal, info, context);
  capture_count(wire::native::Drop::kTruncated);  // may come here once more, for the header
}

}  // namespace

void guard_maps() {
  if (guarded.exchange(true)) return;
  if (sigaction(SIGBUS, nullptr, &before) != 0) return;
  struct sigaction action = before;
  const bool handler = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
  action.sa_sigaction = on_bus;
  // The signal stays open for the header's page.
  action.sa_flags =
      (handler ? before.sa_flags & ~static_cast<int>(SA_RESETHAND) : SA_RESTART | SA_ONSTACK) | SA_SIGINFO | SA_NODEFER;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace rangescope::inject
