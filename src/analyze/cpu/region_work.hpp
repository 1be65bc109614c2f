// The CPU work of one region, from sums of the samples, waits and calls in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/cpu/hot_functions.hpp"
#include "analyze/cpu/own/call_tree.hpp"
#include "analyze/cpu/part_names.hpp"
#include "base/held.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Time, and of it that in which the GPU was idle.
struct IdleTime {
  double ns = 0, idle_ns = 0;

  void add(double more_ns, double more_idle_ns) {
    ns += more_ns;
    idle_ns += more_idle_ns;
  }
};
using PartTimes = std::map<std::uint32_t, IdleTime>;  ///< by part of PartNames

/// Waiting for what a thread had, in a range of its own.
struct HeldKey {
  std::uint32_t holder, region;  ///< index into CpuProfile::threads; kNone: outside ranges
  std::string_view kind;
  auto operator<=>(const HeldKey&) const = default;
};
struct HeldTime {
  double ns = 0;
  std::map<std::uint32_t, std::int64_t> doing;  ///< samples of the holder meanwhile, by frame
};

/// Sums of one set of regions.
struct CpuSetSums {
  PartTimes parts;
  StackCounts stacks;                                ///< in calls too
  std::unordered_map<std::uint32_t, double> waited;  ///< by stack, without idle threads'
  double waits_ns = 0;                               ///< all, those within calls too
  double estimated_ns = 0;                           ///< of those outside calls, by a scale
  std::vector<std::int64_t> counts;  ///< records of each counter; empty where there are none
  std::map<std::uint32_t, std::int64_t> pool;  ///< samples of threads of a pool, by stack
  std::map<HeldKey, HeldTime> held;
};

/// A set that counts in a region. `primary`: its stacks are drawn in this one.
struct CpuSetUse {
  const CpuSetSums* sums;
  bool primary;
};

/// The wall time of a region, as far as it is known.
struct KnownWall {
  std::optional<double> ns;
  /// Threads may have more than this in the region, as all of them do while a start/end range is
  /// open.
  bool at_least = false;
};

class RegionWork {
 public:
  /// Keeps references to all.
  RegionWork(const model::Session& session,
             const std::vector<model::Region>& regions,
             const PartNames& names,
             const OwnCode& own_code,
             const HotFunctions& hot_functions);

  /// Without a wall time it is that of samples, calls and waits together, and with one that is at
  /// least so long also where they are longer than it by more than chance.
  [[nodiscard]] base::Held<model::CpuWork> of(const std::vector<CpuSetUse>& uses,
                                              const KnownWall& wall) const;

 private:
  struct RegionSums;
  struct OutsideSamples;
  struct SharedWall {
    double ns = 0;
    double missing_ns = 0;  ///< what samples of the kernel would have been
  };

  [[nodiscard]] OutsideSamples outside_calls(const StackCounts& stacks) const;
  [[nodiscard]] SharedWall share_wall(const KnownWall& known,
                                      const OutsideSamples& outside,
                                      RegionSums& sums) const;
  void scale_estimated_waits(double wall_ns, double sampled_ns, RegionSums& sums) const;
  void add_parts(const PartTimes& parts, model::CpuWork& work) const;
  void add_holders(const std::map<HeldKey, HeldTime>& held, model::CpuWork& work) const;
  void add_counters(const std::vector<std::int64_t>& records, model::CpuWork& work) const;

  const model::Session& session_;
  const model::CpuProfile& cpu_;
  const std::vector<model::Region>& regions_;
  const PartNames& names_;
  const OwnCode& own_code_;
  const HotFunctions& hot_functions_;
  bool gpu_recorded_;
};

}  // namespace rangescope::analyze
