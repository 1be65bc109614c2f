// The functions that samples show: which cost most by themselves, and which with what they call.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Samples by stack << 2 | in a CUDA call << 1 | GPU idle.
using StackCounts = std::unordered_map<std::uint64_t, std::int64_t>;

class HotFunctions {
 public:
  /// Keeps a reference to `session`.
  explicit HotFunctions(const model::Session& session);

  /// Is `frame` in place of a Python function that was not read?
  [[nodiscard]] bool is_unread(std::uint32_t frame) const { return unread_[frame]; }

  /// Fills CpuWork::functions, by the time of each function itself, and CpuWork::callers, by that
  /// with what it called: at most model::kMostFunctions each. `sample_ns` is what a sample of
  /// `stacks` represents; one of `pool`, by a thread that works for this one, represents
  /// CpuWork::interval_ns.
  void fill(const StackCounts& stacks,
            double sample_ns,
            const StackCounts& pool,
            model::CpuWork& work) const;

 private:
  struct Time {
    double self_ns = 0, total_ns = 0;
  };
  using FrameTimes = std::unordered_map<std::uint32_t, Time>;
  struct PythonScale {
    double self = 1, total = 1;
  };

  [[nodiscard]] PythonScale python_scale(const StackCounts& stacks) const;
  void add_times(const StackCounts& stacks, double sample_ns, FrameTimes& times) const;
  void take_largest(const FrameTimes& times,
                    std::vector<std::uint32_t>& frames,
                    double Time::*time,
                    std::vector<model::CpuFunction>& functions) const;

  const model::Session& session_;
  const model::CpuProfile& cpu_;
  std::vector<model::CpuLine> hot_line_;  ///< of each frame; line 0: unknown
  std::vector<bool> unread_;              ///< by frame
};

}  // namespace rangescope::analyze
