// CPU samples where the kernel gives none: perf_event_open is closed in most containers, and to
// ordinary users on many systems. /proc tells for each thread how long it ran, how long it was
// ready, and whether it sleeps now; its Python functions and what it waits in are read as they are
// with the kernel's records. What native code runs is not known.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sample/cpu/perf.hpp"

namespace rangescope::sample::cpu {

class Polls {
 public:
  static constexpr std::int64_t kInterval_ns = 10'000'000;  ///< of CPU time that a sample counts

  /// Of the descendants of a process, of itself too where `with_root`. Nothing is read before
  /// turn().
  Polls(std::uint32_t root, bool with_root, std::int64_t now_ns);
  /// Reads all of it once and reports what changed since the last turn: at most one interval of
  /// error in when, none in how long.
  void turn(Sink& sink, std::int64_t now_ns);

 private:
  struct Process {
    std::string name;
    std::int64_t maps_at_ns = 0;     ///< libraries come after the start
    std::int64_t maps_pause_ns = 0;  ///< since they were read last
  };
  struct Thread {
    std::uint32_t pid = 0;
    std::int64_t ran_ns = 0, ready_ns = 0;  ///< as the kernel counts them
    std::int64_t owed_ns = 0;               ///< it ran, and no sample counts that yet
    std::int64_t reported_until_ns = 0;     ///< what it did before this time is reported
    std::int64_t unreported_idle_ns = 0;    ///< it neither ran nor was ready
    std::int64_t unreported_ready_ns = 0;   ///< it waited for a core
    bool out = false;
  };
  void look(Sink& sink, std::int64_t now_ns);
  bool follow(Sink& sink, std::uint32_t tid, Thread& thread, std::int64_t now_ns);
  void stops(Sink& sink, std::uint32_t tid, const Thread& thread, std::int64_t now_ns) const;

  std::uint32_t root_;
  bool with_root_;
  std::int64_t previous_turn_ns_, looked_ns_ = 0;
  std::map<std::uint32_t, Process> processes_;
  std::map<std::uint32_t, Thread> threads_;
};

}  // namespace rangescope::sample::cpu
