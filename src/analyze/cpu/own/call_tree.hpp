// One tree of what a region's threads ran and waited in, by total time, as a person reads it: the
// program's own functions, and below each the library function that it calls. What is deeper in a
// library, in an interpreter or in the operating system is the time of that function; threads that
// run none of the program's functions are one row.
//
// The nodes are those of the whole session, made once in O(stacks); a region's tree costs its
// different stacks and the nodes.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/cpu/own/user_code.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

struct CpuTimes {
  double cpu_ns = 0, waiting_ns = 0;
  [[nodiscard]] double total_ns() const { return cpu_ns + waiting_ns; }
};
using OwnTimes =
    std::unordered_map<std::uint32_t, CpuTimes>;  ///< by stack: what ran or waited in it

class CallTree {
 public:
  CallTree(const model::Session& session, const UserCode& code);

  /// Rows of less than a hundredth are left out.
  [[nodiscard]] std::vector<model::CpuTreeRow> rows(const OwnTimes& by_stack) const;

 private:
  struct Node {
    std::uint32_t parent;  ///< before this one; kNone at the top
    std::uint32_t frame;
    bool own;
  };
  /// The nodes of one region: sums with all that they call, and their children that are rows.
  struct RegionNodes {
    std::vector<CpuTimes> times;
    std::vector<std::vector<std::uint32_t>> children;
    std::vector<std::uint32_t> top;
  };
  [[nodiscard]] RegionNodes nodes_of(const OwnTimes& by_stack) const;
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame, bool own);
  [[nodiscard]] bool is_entry_of_library(std::uint32_t frame) const;

  const model::Session& session_;
  std::vector<Node> nodes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known_;  ///< by parent and frame
  std::vector<std::uint32_t> of_stack_;                                     ///< node, or kNone
};

/// Describes a region's CPU work by the program's own functions.
class OwnCode {
 public:
  explicit OwnCode(const model::Session& session);
  /// Fills CpuWork::own_functions and CpuWork::tree, and the callers of CpuWork::functions.
  void fill(const OwnTimes& times, model::CpuWork& work) const;
  /// Does a thread that waits so have work to do?
  [[nodiscard]] bool delays(const model::CpuWait& wait) const {
    const model::CpuThread& thread = session_.cpu.threads[wait.thread];
    return wait.stack != model::kNone &&
           !is_idle_wait(session_, code_, wait.stack, thread.pid == thread.tid);
  }

 private:
  const model::Session& session_;
  const UserCode code_;
  const CallTree tree_;
};

}  // namespace rangescope::analyze
