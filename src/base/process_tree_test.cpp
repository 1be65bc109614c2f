#include "base/process_tree.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace rangescope::base {
namespace process_tree_test {

void* wait_forever(void*) {
  for (;;)
    ::pause();
}

/// Goes on in a second thread.
pid_t child_without_first_thread() {
  const pid_t child = ::fork();
  if (child != 0)
    return child;
  pthread_t thread{};
  ::pthread_create(&thread, nullptr, wait_forever, nullptr);
  ::syscall(SYS_exit, 0);
  ::_exit(1);
}

bool becomes_zombie(pid_t pid) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (std::chrono::steady_clock::now() < until) {
    const auto process = process_at(pid);
    if (process && process->state == 'Z')
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(ProcessTree, AProcessGoesOnWithoutItsFirstThread) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a child of a program with threads";
#endif
  EXPECT_EQ(living_thread(::getpid()), ::getpid());
  const pid_t child = child_without_first_thread();
  ASSERT_GT(child, 0);
  ASSERT_TRUE(becomes_zombie(child));
  EXPECT_NE(living_thread(child), child);
  EXPECT_EQ(process_tree(child).size(), 1u);
  EXPECT_EQ(environment_of(child), environment_of(::getpid()));
  EXPECT_TRUE(process_at(::getpid())->has_program);
  EXPECT_TRUE(thread_at(child, living_thread(child))->has_program);
  EXPECT_FALSE(process_at(child)->has_program);  // an ended thread has none, as one in execve()
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(living_thread(child), child);
  EXPECT_TRUE(process_tree(child).empty());
  ::waitpid(child, nullptr, 0);
}

}  // namespace process_tree_test
}  // namespace rangescope::base
