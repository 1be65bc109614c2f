// A process that runs already, as /proc shows it: whether it may be sampled, and what a recording
// that begins in the middle of its life cannot learn from the kernel's records. Nothing of it is
// stopped, changed or written to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sample/cpu/perf.hpp"

namespace rangescope::sample::cpu {

struct Target {
  std::uint32_t pid = 0;
  std::uint64_t start = 0;  ///< clock ticks since boot: no other process of this id began then
  std::int64_t age_ns = 0;  ///< it has run for so long
  std::vector<std::string> argv, environment;
  std::filesystem::path cwd;
  std::string unread;  ///< why its memory cannot be read: then Python's functions are missing; ""
                       ///< where it can be
};

/// kNoInput: there is no such process, or it has ended; kUsage: a thread, one of the kernel,
/// ourselves; kPermission: another user's, or one that has more rights than we.
[[nodiscard]] base::Result<Target> find_target(std::uint32_t pid);
/// Does it run, with at least one thread?
[[nodiscard]] bool still_runs(const Target& target);

/// A process, and its descendants where `tree`: parents first.
struct Member {
  std::uint32_t pid = 0, parent_pid = 0;
};
[[nodiscard]] std::vector<Member> members_of(std::uint32_t pid, bool tree);
/// Ids of the threads that a process has now, its first one first.
[[nodiscard]] std::vector<std::uint32_t> threads_of(std::uint32_t pid);
/// "" where it has ended.
[[nodiscard]] std::string name_of_thread(std::uint32_t pid, std::uint32_t tid);
/// It waits: neither runs nor could.
[[nodiscard]] bool sleeps(std::uint32_t pid, std::uint32_t tid);
/// What it has mapped to execute, as the kernel's records have it.
void maps_of(std::uint32_t pid, const std::function<void(const Mapped&)>& each);

}  // namespace rangescope::sample::cpu
