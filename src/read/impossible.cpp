#include "read/impossible.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rangescope::read {
namespace {

/// Where more of the work than this starts before its call, the clock is off.
constexpr double kFewShare = 0.1;

enum Case : std::uint8_t { kEndsBeforeStart, kBeforeCall, kOutside, kPossible };
constexpr std::array<const char*, 3> kDetails = {
    "GPU work that ends before it starts was left out",
    "GPU work that starts before the call that launched it was left out",
    "GPU work outside of the recorded time was left out"};

class Impossible {
 public:
  Impossible(model::Session& session, const FirstWork& first, RecordedTime recorded)
      : session_(session), first_(first), recorded_(recorded) {}

  void drop(const std::string& where) {
    each_kind([this](const auto& works, std::size_t from) { count(works, from); });
    const auto few = static_cast<std::uint64_t>(kFewShare * static_cast<double>(called_));
    clock_is_off_ = counts_[kBeforeCall] > std::max<std::uint64_t>(few, 1);
    if (clock_is_off_)
      counts_[kBeforeCall] = 0;
    if (counts_ == std::array<std::uint64_t, 3>{})
      return;
    each_kind([this](auto& works, std::size_t from) { remove(works, from); });
    for (std::size_t reason = 0; reason < counts_.size(); ++reason) {
      if (counts_[reason] == 0)
        continue;
      session_.losses.push_back({"impossible_time", counts_[reason], where + kDetails[reason]});
    }
  }

 private:
  template <class Use>
  void each_kind(Use use) {
    use(session_.kernels, first_.kernels);
    use(session_.copies, first_.copies);
    use(session_.memsets, first_.memsets);
    use(session_.graph_launches, first_.graph_launches);
  }

  template <class Work>
  [[nodiscard]] Case case_of(const Work& work) const {
    if (work.end_ns < work.start_ns)
      return kEndsBeforeStart;
    const bool outside = work.start_ns < recorded_.begin_ns || work.end_ns > recorded_.end_ns;
    if (outside)
      return kOutside;
    if (work.launch == model::kNone || clock_is_off_)
      return kPossible;
    const std::int64_t call_ns = session_.launches[work.launch].start_ns;
    if (work.start_ns < call_ns - kClockError_ns)
      return kBeforeCall;
    return kPossible;
  }

  template <class Work>
  void count(const std::vector<Work>& works, std::size_t from) {
    for (std::size_t i = from; i < works.size(); ++i) {
      if (works[i].launch != model::kNone)
        ++called_;
      const Case found = case_of(works[i]);
      if (found != kPossible)
        ++counts_[found];
    }
  }

  template <class Work>
  void remove(std::vector<Work>& works, std::size_t from) {
    const auto begin = works.begin() + static_cast<std::ptrdiff_t>(from);
    const auto is_impossible = [this](const Work& work) { return case_of(work) != kPossible; };
    works.erase(std::remove_if(begin, works.end(), is_impossible), works.end());
  }

  model::Session& session_;
  FirstWork first_;
  RecordedTime recorded_;
  std::array<std::uint64_t, 3> counts_{};
  std::uint64_t called_ = 0;
  bool clock_is_off_ = false;
};

}  // namespace

void drop_impossible_work(model::Session& session,
                          const FirstWork& first,
                          RecordedTime recorded,
                          const std::string& where) {
  Impossible(session, first, recorded).drop(where);
}

}  // namespace rangescope::read
