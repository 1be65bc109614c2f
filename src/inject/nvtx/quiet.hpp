// Guards around the slow paths of a hook, so that no code of the program runs in the middle.
//
// NoCancel: the thread cannot be cancelled. open, close and fallocate are cancellation points, and
// a program that calls NVTX with a mutex held relies on NVTX being none. Costs two atomic
// operations. KeepErrno: errno is restored. Quiet: both, and no signal handler runs, so that none
// sees a half-done change or leaves one behind with siglongjmp. Costs two system calls. Signals of
// faults and seccomp's stay enabled: if they were blocked, the kernel would kill the program.
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
