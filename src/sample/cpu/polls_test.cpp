#include "sample/cpu/polls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace rangescope::sample::cpu {
namespace polls_test {

/// What is told of one thread, as text: "runs at 5", "waits at 7".
class Told : public Sink {
 public:
  explicit Told(pid_t thread) : thread_(static_cast<std::uint32_t>(thread)) {}
  std::vector<std::string> lines;
  std::set<std::string> paths;
  void sample(const Sample&) override {}
  void counted(const Task&, std::int64_t, std::uint32_t) override {}
  void mapped(const Mapped& mapped) override { paths.emplace(mapped.path); }
  void named(const Task&, std::string_view, bool) override {}
  void forked(const Task&, std::int64_t) override {}
  void ended(const Task& task, std::int64_t at_ns) override { tell(task, "ended", at_ns); }
  void leaves(const Sample&) override {}
  void switched(const Task& task, std::int64_t at_ns, bool out, bool) override {
    tell(task, out ? "waits" : "runs", at_ns);
  }
  void lost(std::uint64_t) override {}
  void throttled() override {}

 private:
  void tell(const Task& task, const char* what, std::int64_t at_ns) {
    if (task.tid != thread_)
      return;  // ThreadSanitizer has one of its own in the process
    lines.push_back(std::string(what) + " at " + std::to_string(at_ns / 1'000'000) + " ms");
  }
  std::uint32_t thread_;
};

bool has_run(pid_t pid) {
  std::uint64_t ran_ns = 0;
  std::ifstream("/proc/" + std::to_string(pid) + "/schedstat") >> ran_ns;
  return ran_ns > 0;
}

// We look late on a busy machine: what a thread ran before it ended is at most a tick, however long
// we did not look.
TEST(Polls, TheTimeBetweenTheLastLookAndAnEndIsNoWork) {
  constexpr std::int64_t kMs = 1'000'000;
  const pid_t child = ::fork();
  if (child == 0)
    for (volatile int spin = 0;;)
      spin = spin + 1;
  while (!has_run(child))
    ::sched_yield();
  Polls polls(static_cast<std::uint32_t>(child), true, 1000 * kMs);
  Told told(child);
  polls.turn(told, 1010 * kMs);
  told.lines.clear();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  polls.turn(told, 2000 * kMs);
  EXPECT_EQ(told.lines, (std::vector<std::string>{"waits at 1020 ms", "ended at 2000 ms"}));
}

// A program may load Python's library long after its start.
TEST(Polls, WhatIsMappedLateIsFound) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto file =
      std::filesystem::temp_directory_path() / ("rangescope-late-" + std::to_string(::getpid()));
  std::ofstream(file) << std::string(4096, '\x90');
  Polls polls(static_cast<std::uint32_t>(::getpid()), true, kSecond);
  Told told(::getpid());
  for (int second = 1; second < 20; ++second)
    polls.turn(told, second * kSecond);
  EXPECT_FALSE(told.paths.contains(file.string()));
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  void* code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(code, MAP_FAILED);
  for (int second = 20; second < 50; ++second)
    polls.turn(told, second * kSecond);
  EXPECT_TRUE(told.paths.contains(file.string()));
  ::munmap(code, 4096);
  ::close(descriptor);
  std::filesystem::remove(file);
}

}  // namespace polls_test
}  // namespace rangescope::sample::cpu
