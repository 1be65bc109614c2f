#include "analyze/cures/module_calls.hpp"

#include <algorithm>
#include <tuple>

#include "model/backward.hpp"
#include "model/module_name.hpp"

namespace rangescope::analyze::cures {
namespace {

struct Launched {
  std::uint32_t thread = 0;  ///< index into Session::threads
  std::int64_t called_ns = 0;
  Id work = 0;
};

/// By thread and time.
std::vector<Launched> launched_works(const Recording& recording) {
  std::vector<Launched> launched;
  for (const Instance& instance : recording.instances()) {
    for (const Id work : instance.works) {
      const Id call = replay::launch_of(recording.graph(), work);
      if (call == model::kNone)
        continue;
      const Operation& operation = recording.operation(call);
      const Id thread = recording.graph().lanes[operation.lane].thread;
      launched.push_back({thread, operation.start_ns, work});
    }
  }
  std::ranges::sort(launched, {}, [](const Launched& launch) {
    return std::tuple(launch.thread, launch.called_ns, launch.work);
  });
  return launched;
}

/// The ranges of one thread that are open, the innermost one last.
class OpenRanges {
 public:
  explicit OpenRanges(const model::Session& session) : session_(session) {}

  void open(std::uint32_t range) {
    close_until(session_.ranges[range].thread, session_.ranges[range].start_ns);
    ranges_.push_back(range);
  }
  /// Those that ended before, and those of other threads.
  void close_until(std::uint32_t thread, std::int64_t at_ns) {
    const auto is_over = [&](std::uint32_t index) {
      const model::Range& range = session_.ranges[index];
      return range.thread != thread || range.end_ns <= at_ns;
    };
    while (!ranges_.empty() && is_over(ranges_.back()))
      ranges_.pop_back();
  }
  [[nodiscard]] const std::vector<std::uint32_t>& all() const { return ranges_; }

 private:
  const model::Session& session_;
  std::vector<std::uint32_t> ranges_;
};

}  // namespace

std::vector<std::uint32_t> ranges_of_modules(const model::Session& session) {
  std::vector<std::uint32_t> ranges;
  for (std::uint32_t index = 0; index < session.ranges.size(); ++index) {
    const model::Range& range = session.ranges[index];
    const std::string_view domain = session.strings.view(session.domains[range.domain].name);
    const bool is_module = range.module || domain == model::kModuleDomain;
    if (is_module && range.end_ns != model::kOpen)
      ranges.push_back(index);
  }
  std::ranges::stable_sort(ranges, {}, [&](std::uint32_t index) {
    const model::Range& range = session.ranges[index];
    return std::tuple(range.thread, range.start_ns, -range.end_ns);
  });
  return ranges;
}

ModuleCalls::ModuleCalls(const Recording& recording)
    : session_(recording.session()),
      names_(recording.graph().size()),
      phases_(recording.graph().size()),
      is_in_backward_pass_(recording.graph().size()) {
  const std::vector<std::uint32_t> ranges = ranges_of_modules(session_);
  is_empty_ = ranges.empty();
  if (is_empty_)
    return;
  OpenRanges open(session_);
  auto next = ranges.begin();
  for (const Launched& launch : launched_works(recording)) {
    const std::tuple called(launch.thread, launch.called_ns);
    for (; next != ranges.end(); ++next) {
      const model::Range& range = session_.ranges[*next];
      if (std::tuple(range.thread, range.start_ns) > called)
        break;
      open.open(*next);
    }
    open.close_until(launch.thread, launch.called_ns);
    if (open.all().empty())
      continue;
    names_[launch.work] = session_.ranges[open.all().back()].name;
    phases_[launch.work] = session_.ranges[open.all().front()].name;
    is_in_backward_pass_[launch.work] = phase_of(launch.work) == model::kBackward;
  }
}

std::string_view ModuleCalls::class_of(Id work) const {
  return model::class_of_module(session_.strings.view(names_[work]));
}

}  // namespace rangescope::analyze::cures
