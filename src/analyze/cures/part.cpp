#include "analyze/cures/part.hpp"

#include <algorithm>
#include <vector>

namespace rangescope::analyze::cures {
namespace {

using model::kNone;

bool holds(const TimeWindow& window, std::int64_t moment_ns) {
  return window.start_ns <= moment_ns && moment_ns <= window.end_ns;
}

/// What a range has in a window.
enum class Overlap { kNone, kWhole, kCutLoop, kCutStep };

Overlap overlap_of(const model::Range& range, const TimeWindow& window) {
  if (range.end_ns < window.start_ns || range.start_ns > window.end_ns)
    return Overlap::kNone;
  if (holds(window, range.start_ns) && holds(window, range.end_ns))
    return Overlap::kWhole;
  const std::int64_t start_ns = std::max(range.start_ns, window.start_ns);
  const std::int64_t end_ns = std::min(range.end_ns, window.end_ns);
  const bool covers_half = 2 * (end_ns - start_ns) >= window.end_ns - window.start_ns;
  return covers_half ? Overlap::kCutLoop : Overlap::kCutStep;
}

class Part {
 public:
  Part(const model::Session& whole, const TimeWindow& window) : whole_(whole), window_(window) {}

  model::Session take() && {
    copy_tables();
    copy_launches();
    copy_gpu_work();
    copy_ranges();
    copy_cpu_profile();
    copy_allocations();
    return std::move(part_);
  }

 private:
  /// Small, or referred to by index from everywhere.
  void copy_tables() {
    for (model::StringId id = 0; id < whole_.strings.size(); ++id)
      part_.strings.intern(whole_.strings.view(id));
    part_.clock = whole_.clock;
    part_.begin_ns = window_.start_ns;
    part_.end_ns = window_.end_ns;
    part_.processes = whole_.processes;
    part_.threads = whole_.threads;
    part_.domains = whole_.domains;
    part_.devices = whole_.devices;
    part_.streams = whole_.streams;
    part_.kernel_names = whole_.kernel_names;
    part_.kernel_shapes = whole_.kernel_shapes;
    part_.graph_nodes = whole_.graph_nodes;
    part_.unrecorded = whole_.unrecorded;
  }

  void copy_launches() {
    index_in_part_.assign(whole_.launches.size(), kNone);
    for (std::size_t index = 0; index < whole_.launches.size(); ++index) {
      const model::Launch& launch = whole_.launches[index];
      if (!holds(window_, launch.start_ns))
        continue;
      index_in_part_[index] = static_cast<std::uint32_t>(part_.launches.size());
      part_.launches.push_back(launch);
    }
  }

  void copy_gpu_work() {
    copy_launched(whole_.kernels, part_.kernels);
    copy_launched(whole_.copies, part_.copies);
    copy_launched(whole_.memsets, part_.memsets);
    copy_launched(whole_.graph_launches, part_.graph_launches);
    copy_launched(whole_.synchronizations, part_.synchronizations);
    for (const model::EventCall& call : whole_.event_calls) {
      if (call.launch == kNone || index_in_part_[call.launch] == kNone)
        continue;
      part_.event_calls.push_back(call);
      part_.event_calls.back().launch = index_in_part_[call.launch];
    }
  }

  /// Work whose call was not recorded is in the part where it begins.
  template <class Work>
  void copy_launched(const std::vector<Work>& works, std::vector<Work>& into) const {
    for (const Work& work : works) {
      const bool has_call = work.launch != kNone;
      const bool is_inside =
          has_call ? index_in_part_[work.launch] != kNone : holds(window_, work.start_ns);
      if (!is_inside)
        continue;
      into.push_back(work);
      if (has_call)
        into.back().launch = index_in_part_[work.launch];
    }
  }

  void copy_ranges() {
    const std::vector<TimeWindow> whole_steps = windows_of_whole_steps();
    for (const model::Range& range : whole_.ranges) {
      const Overlap overlap = overlap_of(range, window_);
      const TimeWindow& inside = whole_steps[range.thread];
      const bool is_whole = overlap == Overlap::kWhole && holds(inside, range.start_ns) &&
                            holds(inside, range.end_ns);
      if (!is_whole && overlap != Overlap::kCutLoop)
        continue;
      part_.ranges.push_back(range);
      model::Range& copied = part_.ranges.back();
      copied.attributes = kNone;
      copied.start_ns = std::max(range.start_ns, window_.start_ns);
      copied.end_ns = std::min(range.end_ns, window_.end_ns);
    }
  }

  /// Of each thread the window without the steps at its edges.
  [[nodiscard]] std::vector<TimeWindow> windows_of_whole_steps() const {
    std::vector<TimeWindow> windows(whole_.threads.size(), window_);
    for (const model::Range& range : whole_.ranges) {
      if (overlap_of(range, window_) != Overlap::kCutStep)
        continue;
      TimeWindow& inside = windows[range.thread];
      if (range.start_ns < window_.start_ns)
        inside.start_ns = std::max(inside.start_ns, range.end_ns);
      else
        inside.end_ns = std::min(inside.end_ns, range.start_ns);
    }
    return windows;
  }

  void copy_cpu_profile() {
    const model::CpuProfile& cpu = whole_.cpu;
    part_.cpu.interval_ns = cpu.interval_ns;
    part_.cpu.threads = cpu.threads;
    part_.cpu.frames = cpu.frames;
    part_.cpu.stacks = cpu.stacks;
    const auto is_inside = [&](const model::CpuSample& sample) {
      return holds(window_, sample.at_ns);
    };
    std::ranges::copy_if(cpu.samples, std::back_inserter(part_.cpu.samples), is_inside);
  }

  /// What was handed out meanwhile, without the stacks of those who asked.
  void copy_allocations() {
    part_.allocators.allocators = whole_.allocators.allocators;
    for (const model::Allocation& allocation : whole_.allocators.allocations) {
      if (allocation.older || !holds(window_, allocation.start_ns))
        continue;
      part_.allocators.allocations.push_back(allocation);
      part_.allocators.allocations.back().stack = kNone;
    }
  }

  const model::Session& whole_;
  TimeWindow window_;
  model::Session part_;
  std::vector<std::uint32_t> index_in_part_;  ///< by index into Session::launches; kNone: outside
};

}  // namespace

std::size_t count_operations(const model::Session& session) {
  return session.launches.size() + session.kernels.size() + session.copies.size() +
         session.memsets.size() + session.graph_launches.size();
}

TimeWindow middle_of(const model::Session& session, std::size_t operations) {
  std::vector<std::int64_t> starts_ns;
  starts_ns.reserve(session.launches.size());
  for (const model::Launch& launch : session.launches)
    starts_ns.push_back(launch.start_ns);
  if (starts_ns.empty())
    return {session.begin_ns, session.end_ns};
  const double share = std::min(
      1.0, static_cast<double>(operations) / static_cast<double>(count_operations(session)));
  const auto calls = static_cast<double>(starts_ns.size());
  const auto start_of_call = [&](double index) {
    const auto call = starts_ns.begin() + static_cast<std::ptrdiff_t>(index);
    std::ranges::nth_element(starts_ns, call);
    return *call;
  };
  const std::int64_t start_ns = start_of_call(calls * (1 - share) / 2);
  const std::int64_t end_ns = start_of_call(std::min(calls - 1, calls * (1 + share) / 2));
  return {start_ns, end_ns};
}

model::Session part_of(const model::Session& session, const TimeWindow& window) {
  return Part(session, window).take();
}

}  // namespace rangescope::analyze::cures
