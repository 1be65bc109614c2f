#include "analyze/replay/hand_overs.hpp"

#include <algorithm>

namespace rangescope::analyze::replay {
namespace {

/// Threads that call side by side are rarely quiet for so long, nor does another one make so many
/// calls meanwhile.
constexpr std::int64_t kQuiet_ns = 50'000;
constexpr std::ptrdiff_t kLeastCallsOfOthers = 3;
/// A thread that began so soon after a call of another one was started or woken by it.
constexpr std::int64_t kWokenWithin_ns = 10'000'000;

class HandOvers {
  [[nodiscard]] auto end_of() const {
    return [this](Id call) { return calls_[call].end_ns; };
  }

 public:
  HandOvers(const model::Session& session, const Timeline& timeline)
      : calls_(timeline.calls), by_end_(session.processes.size()) {
    process_of_thread_.reserve(session.threads.size());
    for (const model::Thread& thread : session.threads) {
      process_of_thread_.push_back(thread.process);
    }
    for (Id call = 0; call < calls_.size(); ++call)
      by_end_[process_of(call)].push_back(call);
    for (std::vector<Id>& calls : by_end_)
      std::ranges::stable_sort(calls, {}, end_of());
  }

  [[nodiscard]] Id before(Id call) const {
    const std::vector<Id>& by_end = by_end_[process_of(call)];
    const std::int64_t resumed_ns = calls_[call].start_ns;
    const auto resumed = std::ranges::upper_bound(by_end, resumed_ns, {}, end_of());
    if (resumed == by_end.begin())
      return model::kNone;
    const Id last = *(resumed - 1);
    if (calls_[last].thread == calls_[call].thread || !is_quiet_after(last, call)) {
      return model::kNone;
    }
    const bool is_first = call == 0 || calls_[call - 1].thread != calls_[call].thread;
    if (is_first) {
      const bool is_woken = resumed_ns - calls_[last].end_ns <= kWokenWithin_ns;
      return is_woken && takes_over(call, last) ? last : model::kNone;
    }
    const std::int64_t quiet_since_ns = calls_[call - 1].end_ns;
    const auto quiet = std::ranges::upper_bound(by_end, quiet_since_ns, {}, end_of());
    const bool waited =
        resumed_ns - quiet_since_ns >= kQuiet_ns && resumed - quiet >= kLeastCallsOfOthers;
    return waited ? last : model::kNone;
  }

 private:
  [[nodiscard]] std::uint32_t process_of(Id call) const {
    return process_of_thread_[calls_[call].thread];
  }
  /// The thread of `last` makes no other call until `call` has returned.
  [[nodiscard]] bool is_quiet_after(Id last, Id call) const {
    const bool has_next =
        last + 1 < calls_.size() && calls_[last + 1].thread == calls_[last].thread;
    return !has_next || calls_[last + 1].start_ns >= calls_[call].end_ns;
  }

  /// The thread of `call` makes several calls before that of `last` makes another.
  [[nodiscard]] bool takes_over(Id call, Id last) const {
    const Id several = call + static_cast<Id>(kLeastCallsOfOthers) - 1;
    const bool makes_several =
        several < calls_.size() && calls_[several].thread == calls_[call].thread;
    return makes_several && is_quiet_after(last, several);
  }

  const std::vector<Call>& calls_;
  std::vector<std::uint32_t> process_of_thread_;
  std::vector<std::vector<Id>> by_end_;  ///< calls of each process
};

}  // namespace

std::vector<Id> hand_overs_of(const model::Session& session, const Timeline& timeline) {
  std::vector<Id> before(timeline.calls.size(), model::kNone);
  if (session.threads.size() < 2)
    return before;
  const HandOvers hand_overs(session, timeline);
  for (Id call = 0; call < before.size(); ++call)
    before[call] = hand_overs.before(call);
  return before;
}

}  // namespace rangescope::analyze::replay
