// What a hook wraps around its slow ways, so that nothing of the program can get in between.
//
// NoCancel: the thread cannot be cancelled meanwhile (open, close and fallocate are cancellation
// points; a program that calls NVTX with a mutex held relies on it being none). Costs two atomic
// operations. Quiet: moreover no signal handler runs, so that none finds half a change or leaves it
// behind with siglongjmp; and errno is kept. Costs two system calls. Signals of faults, and
// seccomp's, come through: the kernel would kill instead.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace rangescope::inject {

class NoCancel {
 public:
  NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel& operator=(NoCancel&&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

class KeepErrno {
 public:
  KeepErrno() : errno_(errno) {}
  ~KeepErrno() { errno = errno_; }
  KeepErrno& operator=(KeepErrno&&) = delete;

 private:
  int errno_;
};

class Quiet {
 public:
  Quiet() {
    sigset_t held;
    sigfillset(&held);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS})
      sigdelset(&held, fault);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~Quiet() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Quiet& operator=(Quiet&&) = delete;

 private:
  KeepErrno keep_errno_;
  NoCancel no_cancel_;
  sigset_t before_{};
};

}  // namespace rangescope::inject
