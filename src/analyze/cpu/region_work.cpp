#include "analyze/cpu/region_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyze/cpu/cpu.hpp"
#include "analyze/cpu/other_threads.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

using model::CpuWork;
using model::kNone;

/// Of a counter whose records lack so small a part, no record is no event.
constexpr double kHardlyAnyLost = 0.05;

/// Adds time to the waits; their kinds keep their shares.
void add_to_waits(double added_ns, PartTimes& parts) {
  double waits_ns = 0;
  for (const auto& [part, time] : parts)
    if (PartNames::kind_of(part) == kWaiting)
      waits_ns += time.ns;
  if (waits_ns <= 0)
    return;
  const double scale = 1 + added_ns / waits_ns;
  for (auto& [part, time] : parts)
    if (PartNames::kind_of(part) == kWaiting)
      time = {time.ns * scale, time.idle_ns * scale};
}

}  // namespace

/// Sums over all sets of a region.
struct RegionWork::RegionSums {
  PartTimes parts;
  StackCounts stacks, pool;
  std::map<std::uint32_t, std::int64_t> drawn;  ///< samples by stack that are drawn in this region
  std::map<HeldKey, HeldTime> held;
  OwnTimes times;
  std::vector<std::int64_t> records;  ///< by counter
  std::int64_t pool_samples = 0;
  double waits_ns = 0, recorded_ns = 0, estimated_ns = 0;

  void add(const CpuSetUse& use) {
    const CpuSetSums& set = *use.sums;
    for (const auto& [stack, ns] : set.waited)
      times[stack].waiting_ns += ns;
    for (const auto& [stack, count] : set.pool) {
      pool[std::uint64_t{stack} << 2] += count;
      pool_samples += count;
      if (use.primary)
        drawn[stack] += count;
    }
    for (const auto& [key, time] : set.held) {
      held[key].ns += time.ns;
      for (const auto& [frame, count] : time.doing)
        held[key].doing[frame] += count;
    }
    for (std::size_t c = 0; c < set.counts.size(); ++c)
      records[c] += set.counts[c];
    for (const auto& [part, time] : set.parts) {
      parts[part].add(time.ns, time.idle_ns);
      recorded_ns += time.ns;
    }
    for (const auto& [stack, count] : set.stacks) {
      stacks[stack] += count;
      if (use.primary)
        drawn[static_cast<std::uint32_t>(stack >> 2)] += count;
    }
    waits_ns += set.waits_ns;
    estimated_ns += set.estimated_ns;
  }
};

/// Samples outside CUDA calls.
struct RegionWork::OutsideSamples {
  struct Count {
    std::int64_t samples = 0, idle = 0;

    void add(std::int64_t count, bool is_idle) {
      samples += count;
      if (is_idle)
        idle += count;
    }
  };
  std::map<std::uint32_t, Count> by_part;
  Count all;

  [[nodiscard]] double idle_share() const {
    if (all.samples == 0)
      return 1;
    return static_cast<double>(all.idle) / static_cast<double>(all.samples);
  }
};

RegionWork::RegionWork(const model::Session& session,
                       const std::vector<model::Region>& regions,
                       const PartNames& names,
                       const OwnCode& own_code,
                       const HotFunctions& hot_functions)
    : session_(session),
      cpu_(session.cpu),
      regions_(regions),
      names_(names),
      own_code_(own_code),
      hot_functions_(hot_functions),
      gpu_recorded_(!session.kernels.empty() || !session.copies.empty() ||
                    !session.graph_launches.empty()) {}

base::Held<CpuWork> RegionWork::of(const std::vector<CpuSetUse>& uses,
                                   const KnownWall& wall) const {
  RegionSums sums;
  sums.records.resize(cpu_.counters.size());
  for (const CpuSetUse& use : uses)
    sums.add(use);
  CpuWork work;
  work.interval_ns = static_cast<double>(cpu_.interval_ns);
  work.pool_samples = sums.pool_samples;
  for (const auto& [stack, count] : sums.stacks)
    work.samples += count;
  add_counters(sums.records, work);
  const bool has_samples = work.samples + work.pool_samples > 0;
  if (!has_samples && sums.recorded_ns <= 0 && work.counters.empty())
    return {};
  work.pool_ns = static_cast<double>(work.pool_samples) * work.interval_ns;
  add_holders(sums.held, work);
  const SharedWall shared = share_wall(wall, outside_calls(sums.stacks), sums);
  add_parts(sums.parts, work);
  for (const auto& [stack, count] : sums.drawn)
    work.stacks.push_back({stack, count});
  const double ran_ns = std::max(0.0, shared.ns - sums.waits_ns - shared.missing_ns);
  const double sample_ns = work.samples > 0 ? ran_ns / static_cast<double>(work.samples) : 0;
  if (has_samples)
    hot_functions_.fill(sums.stacks, sample_ns, sums.pool, work);
  for (const auto& [key, count] : sums.stacks)
    sums.times[static_cast<std::uint32_t>(key >> 2)].cpu_ns +=
        static_cast<double>(count) * sample_ns;
  own_code_.fill(sums.times, work);
  return work;
}

RegionWork::OutsideSamples RegionWork::outside_calls(const StackCounts& stacks) const {
  OutsideSamples outside;
  for (const auto& [key, count] : stacks) {
    const bool is_in_call = (key & 2) != 0;
    const bool is_idle = (key & 1) != 0;
    if (is_in_call)
      continue;
    outside.by_part[names_.of_stack(key >> 2)].add(count, is_idle);
    outside.all.add(count, is_idle);
  }
  return outside;
}

/// Shares out what calls and waits leave of the wall time, by samples.
RegionWork::SharedWall RegionWork::share_wall(const KnownWall& known,
                                              const OutsideSamples& outside,
                                              RegionSums& sums) const {
  const auto interval_ns = static_cast<double>(cpu_.interval_ns);
  const auto samples = static_cast<double>(outside.all.samples);
  const double sampled_ns = samples * interval_ns;
  if (known.ns && !known.at_least && sums.estimated_ns > 0)
    scale_estimated_waits(*known.ns, sampled_ns, sums);
  const double chance_ns = 3 * interval_ns * std::sqrt(samples + 1);
  SharedWall shared{sums.recorded_ns + sampled_ns, 0};
  if (known.ns && !known.at_least)
    shared.ns = std::max(*known.ns, 0.0);
  else if (known.ns && shared.ns <= *known.ns + chance_ns)
    shared.ns = std::max(*known.ns, sums.recorded_ns);
  double rest_ns = std::max(0.0, shared.ns - sums.recorded_ns);
  // Samples of the kernel are missing: what they would have been, where that is more than chance.
  if (!cpu_.kernel && cpu_.switches && rest_ns - sampled_ns > chance_ns)
    shared.missing_ns = rest_ns - sampled_ns;
  const double idle_share = outside.idle_share();
  if (shared.missing_ns > 0) {
    sums.parts[names_.kernel()].add(shared.missing_ns, shared.missing_ns * idle_share);
    rest_ns -= shared.missing_ns;
  }
  // Where nothing separates waits from running, samples alone say how long it ran.
  if (!cpu_.switches && sampled_ns < rest_ns) {
    const double waited_ns = rest_ns - sampled_ns;
    sums.parts[names_.unrecorded_wait()].add(waited_ns, waited_ns * idle_share);
    rest_ns -= waited_ns;
  }
  if (outside.all.samples > 0) {
    const double sample_ns = rest_ns / samples;
    for (const auto& [part, count] : outside.by_part)
      sums.parts[part].add(static_cast<double>(count.samples) * sample_ns,
                           static_cast<double>(count.idle) * sample_ns);
  } else if (rest_ns > 0) {
    sums.parts[names_.unknown()].add(rest_ns, rest_ns);  // too short for a sample
  }
  return shared;
}

/// Waits that were scaled fill what samples and calls leave of the wall time.
void RegionWork::scale_estimated_waits(double wall_ns, double sampled_ns, RegionSums& sums) const {
  double left_ns = wall_ns - sums.recorded_ns + sums.estimated_ns;
  if (cpu_.kernel)
    left_ns -= sampled_ns;
  else
    left_ns = std::min(left_ns, sums.estimated_ns);
  const double added_ns = std::max(0.0, left_ns) - sums.estimated_ns;
  add_to_waits(added_ns, sums.parts);
  sums.recorded_ns += added_ns;
  sums.waits_ns += added_ns;
}

void RegionWork::add_parts(const PartTimes& parts, CpuWork& work) const {
  model::CpuPart* const totals[] = {&work.python, &work.native, &work.cuda, &work.waiting};
  for (std::size_t kind = 0; kind < std::size(totals); ++kind)
    totals[kind]->kind = kPartKinds[kind];
  for (const auto& [part, time] : parts) {
    if (time.ns <= 0)
      continue;
    const PartKind kind = PartNames::kind_of(part);
    work.parts.push_back(
        {std::string(kPartKinds[kind]), std::string(names_.name_of(part)), time.ns, time.idle_ns});
    totals[kind]->ns += time.ns;
    totals[kind]->gpu_idle_ns += time.idle_ns;
  }
  std::ranges::stable_sort(work.parts, std::greater<>(), &model::CpuPart::ns);
  if (gpu_recorded_)
    return;
  for (model::CpuPart* total : totals)
    total->gpu_idle_ns = model::kNan;
  for (model::CpuPart& part : work.parts)
    part.gpu_idle_ns = model::kNan;
}

void RegionWork::add_holders(const std::map<HeldKey, HeldTime>& held, CpuWork& work) const {
  for (const auto& [key, time] : held) {
    const model::CpuThread& thread = cpu_.threads[key.holder];
    model::CpuHolder holder;
    holder.kind = key.kind;
    holder.thread = fmt::format("{} ({})", session_.strings.view(thread.name), thread.tid);
    if (key.region < regions_.size())
      holder.range = model::path_text(regions_[key.region]);
    const auto main_frame =
        std::max_element(time.doing.begin(), time.doing.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        });
    if (main_frame != time.doing.end())
      holder.doing = function_of(session_, main_frame->first).name;
    holder.ns = time.ns;
    work.holders.push_back(std::move(holder));
  }
  longest_holders(work.holders);
}

/// What was sampled and never recorded is absent; what is recorded each time, or nearly, is 0. Of
/// n records that represent w events each the number of events varies by n w (w - 1): by nothing
/// where each was recorded.
void RegionWork::add_counters(const std::vector<std::int64_t>& records, CpuWork& work) const {
  for (std::size_t c = 0; c < records.size(); ++c) {
    const model::CpuCounter& counter = cpu_.counters[c];
    const double weight = counter.weight;
    const double unrecorded = std::max(0.0, weight - 1);  // for each record
    if (records[c] == 0 && (unrecorded > kHardlyAnyLost || counter.running < 1))
      continue;
    const auto count = static_cast<double>(records[c]);
    work.counters.push_back({std::string(session_.strings.view(counter.name)),
                             records[c],
                             count * weight,
                             std::sqrt(count * weight * unrecorded)});
  }
}

}  // namespace rangescope::analyze
