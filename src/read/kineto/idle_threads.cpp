#include "read/kineto/idle_threads.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace rangescope::read::kineto {
namespace {

constexpr double kIdle = 0.9;  ///< of a thread's time in calls that wait

/// Is it a Python function that waits: for a lock, a queue, a pipe, a while?
bool waits_for_others(std::string_view function) {
  constexpr std::string_view kWaits[] = {"acquire of _thread.",
                                         ": wait",
                                         ": _recv",
                                         ": recv",
                                         "select.",
                                         "poll of ",
                                         "sleep>",
                                         "read>",
                                         "accept of ",
                                         ": join",
                                         "_wait_for_tstate",
                                         ": select"};
  return std::any_of(std::begin(kWaits), std::end(kWaits), [&](std::string_view wait) {
    return function.find(wait) != std::string_view::npos;
  });
}

/// Time of ranges that may lie in one another: each moment counts once.
class CoveredTime {
 public:
  explicit CoveredTime(std::int64_t begin_ns) : reached_ns_(begin_ns) {}
  /// In the order of their starts.
  void add(const model::Range& range) {
    const std::int64_t from_ns = std::max(range.start_ns, reached_ns_);
    reached_ns_ = std::max(reached_ns_, range.end_ns);
    total_ns_ += std::max<std::int64_t>(0, range.end_ns - from_ns);
  }
  [[nodiscard]] double ns() const { return static_cast<double>(total_ns_); }

 private:
  std::int64_t reached_ns_, total_ns_ = 0;
};

/// Of a thread's Python functions.
bool mostly_waits(const model::Session& session, std::vector<const model::Range*>& functions) {
  std::ranges::sort(functions, {}, &model::Range::start_ns);
  const std::int64_t begin_ns = functions.front()->start_ns;
  CoveredTime all(begin_ns), waits(begin_ns);
  for (const model::Range* function : functions) {
    all.add(*function);
    if (waits_for_others(session.strings.view(function->name)))
      waits.add(*function);
  }
  return waits.ns() >= kIdle * all.ns();
}

}  // namespace

std::uint64_t leave_out_idle_threads(model::Session& session, std::uint32_t python_domain) {
  std::vector<bool> works(session.threads.size());
  std::vector<std::vector<const model::Range*>> functions(session.threads.size());
  for (const model::Launch& call : session.launches)
    works[call.thread] = true;
  for (const model::Range& range : session.ranges) {
    if (range.domain == python_domain && range.end_ns != model::kOpen)
      functions[range.thread].push_back(&range);
    else
      works[range.thread] = true;
  }
  std::vector<bool> idle(session.threads.size());
  for (std::size_t thread = 0; thread < functions.size(); ++thread)
    idle[thread] =
        !works[thread] && !functions[thread].empty() && mostly_waits(session, functions[thread]);
  std::erase_if(session.ranges, [&](const model::Range& range) { return idle[range.thread]; });
  return static_cast<std::uint64_t>(std::ranges::count(idle, true));
}

}  // namespace rangescope::read::kineto
