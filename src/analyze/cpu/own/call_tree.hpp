// One tree of what a region's threads ran and waited in, by total time, as a person reads it: the
// program's own functions, and below each the library function that it calls. What is deeper in a
// library, in an interpreter or in the operating system is the time of that function; threads that
// run none of the program's functions are one row.
//
// The nodes are those of the whole session, made once in O(stacks). The tree of a region costs
// O(n log n) in the nodes that its stacks pass.
#pragma once

#include <cstdint>
#include <functional>
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
  void add(const CpuTimes& other) {
    cpu_ns += other.cpu_ns;
    waiting_ns += other.waiting_ns;
  }
};
/// By stack: what ran or waited in it.
using OwnTimes = std::unordered_map<std::uint32_t, CpuTimes>;

class CallTree {
 public:
  /// Keeps references to both.
  CallTree(const model::Session& session, const UserCode& code);

  /// Rows of less than a hundredth are left out.
  [[nodiscard]] std::vector<model::CpuTreeRow> rows(const OwnTimes& by_stack) const;

 private:
  struct Node {
    std::uint32_t parent;  ///< index less than this node's own; kNone at the top
    std::uint32_t frame;
    bool is_own;  ///< a function of the program, not of a library
  };
  /// The nodes of one region: sums with all that they call, and the children that are rows.
  struct RegionNodes {
    std::map<std::uint32_t, CpuTimes, std::greater<>> times;
    std::map<std::uint32_t, std::vector<std::uint32_t>> children;  ///< of kNone: those at the top
  };
  [[nodiscard]] RegionNodes nodes_of(const OwnTimes& by_stack) const;
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame, bool is_own);
  [[nodiscard]] bool is_entry_of_library(std::uint32_t frame) const;

  const model::Session& session_;
  const UserCode& code_;
  std::vector<Node> nodes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> children_;  ///< by parent, frame
  std::vector<std::uint32_t> node_of_stack_;                                   ///< or kNone
};

/// Describes a region's CPU work by the program's own functions.
class OwnCode {
 public:
  explicit OwnCode(const model::Session& session);
  OwnCode(const OwnCode&) = delete;  // the tree refers to `code_`
  OwnCode& operator=(const OwnCode&) = delete;
  /// Fills CpuWork::own_functions and CpuWork::tree, and the callers of CpuWork::functions.
  void fill(const OwnTimes& times, model::CpuWork& work) const;
  /// Does a thread that waits so have work to do?
  [[nodiscard]] bool delays(const model::CpuWait& wait) const {
    if (wait.stack == model::kNone)
      return false;
    return !code_.is_idle(wait, session_.cpu.threads[wait.thread]);
  }
  [[nodiscard]] const UserCode& code() const { return code_; }

 private:
  const model::Session& session_;
  const UserCode code_;
  const CallTree tree_;
};

}  // namespace rangescope::analyze
