// Waits of all threads by the program's own function that waited: what delays work, and what merely
// has none.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analyze/cpu/other_threads.hpp"
#include "analyze/cpu/own/user_code.hpp"
#include "analyze/statistics/stretches.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::CpuWait;
using model::kNone;
using model::Session;
using model::WaitKind;

constexpr std::size_t kMostWaitRows = 50;
/// A wait that ends so shortly before the recording lasted to the end of the program.
constexpr std::int64_t kNearTheEnd_ns = 200'000'000;
/// Samples taken during a wait that are looked at to find what another thread runs meanwhile, and
/// waits of other threads that end in it or behind it.
constexpr int kMostSamplesOfWait = 64;
constexpr int kMostWaitsOfWait = 64;
/// Threads that are in a function while another one waits for a lock there: one of them holds it.
/// Their waits add up to no more than the other's wait, but for switches in between.
constexpr double kOneHolder = 1.1;
/// Of the time that is waited for a lock: a holder that waits as long is why.
constexpr double kHolderWaitsMostly = 0.5;
/// Of the holder's own waits there: less is no property of them.
constexpr double kHoldsUpMostly = 0.5;

struct PlaceKey {
  WaitKind kind;
  std::uint32_t frame;  ///< kNone: no own function, and no function with a name
  bool idle;
  auto operator<=>(const PlaceKey&) const = default;
};
struct PlaceSums {
  double count = 0, total_ns = 0;
  Spans spans;
  std::set<std::uint32_t> threads;
  /// Samples of other threads inside the same function, by the innermost own function.
  std::map<std::uint32_t, int> meanwhile;
  /// What another thread inside the same function waited for meanwhile, and how long.
  std::map<PlaceKey, double> holder_waits_ns;
  bool event_loop = false, to_the_end = false;
};

class WaitPlaces {
 public:
  WaitPlaces(const Session& session, const UserCode& code)
      : session_(session), cpu_(session.cpu), code_(code) {
    for (std::uint32_t s = 0; s < cpu_.samples.size(); ++s)
      samples_by_time_.push_back(s);
    std::ranges::sort(
        samples_by_time_, {}, [&](std::uint32_t sample) { return cpu_.samples[sample].at_ns; });
    for (std::uint32_t w = 0; w < cpu_.waits.size(); ++w)
      if (may_hold_a_lock(cpu_.waits[w]))
        others_by_end_.push_back(w);
    std::ranges::sort(
        others_by_end_, {}, [&](std::uint32_t wait) { return cpu_.waits[wait].end_ns; });
    for (const CpuWait& wait : cpu_.waits)
      if (is_named_by_function(wait))
        add(wait);
  }

  [[nodiscard]] std::vector<model::CpuWaitRow> rows() {
    std::map<PlaceKey, model::CpuWaitRow> row_of_place;
    for (auto& [key, sums] : places_)
      row_of_place.emplace(key, row_of(key, sums));
    for (auto& [key, sums] : places_)
      add_waiting_holder(sums, row_of_place[key], row_of_place);
    std::vector<model::CpuWaitRow> rows;
    for (auto& [key, row] : row_of_place)
      rows.push_back(std::move(row));
    std::ranges::stable_sort(rows, [](const model::CpuWaitRow& a, const model::CpuWaitRow& b) {
      return std::tuple(!a.idle, a.blocked_ns) > std::tuple(!b.idle, b.blocked_ns);
    });
    if (rows.size() > kMostWaitRows)
      rows.resize(kMostWaitRows);
    return rows;
  }

 private:
  /// Waits for a core or the GIL are between any two instructions: the functions say nothing. Short
  /// ones have no stack.
  [[nodiscard]] static bool is_named_by_function(const CpuWait& wait) {
    return wait.stack != kNone && wait.kind != WaitKind::kPreempted && wait.kind != WaitKind::kGil;
  }

  void add(const CpuWait& wait) {
    const bool idle = code_.is_idle(wait, cpu_.threads[wait.thread]);
    std::uint32_t frame = code_.innermost[wait.stack];
    const bool in_own_function = frame != kNone;
    if (!in_own_function)
      frame = telling_frame(cpu_, wait.stack);
    PlaceSums& sums = places_[{wait.kind, frame, idle}];
    sums.count += wait.weight;
    sums.total_ns += wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
    sums.spans.emplace_back(wait.start_ns, wait.end_ns);
    sums.threads.insert(wait.thread);
    const std::int64_t half_ns = (session_.end_ns - session_.begin_ns) / 2;
    const bool lasts_long = wait.end_ns - wait.start_ns > half_ns;
    sums.to_the_end |= lasts_long && wait.end_ns + kNearTheEnd_ns >= session_.end_ns;
    if (!idle && code_.in_event_loop[wait.stack])
      sums.event_loop = true;
    if (in_own_function && wait.kind == WaitKind::kLock && !idle) {
      add_meanwhile(wait, frame, sums);
      add_holder_waits(wait, frame, sums);
    }
  }

  /// A thread that waits in the program's own code for something else than a lock may hold one.
  [[nodiscard]] bool may_hold_a_lock(const CpuWait& wait) const {
    if (!is_named_by_function(wait) || wait.kind == WaitKind::kLock)
      return false;
    return code_.innermost[wait.stack] != kNone && !code_.is_idle(wait, cpu_.threads[wait.thread]);
  }

  /// The thread that holds the lock may wait for something itself, in the same function.
  void add_holder_waits(const CpuWait& wait, std::uint32_t function, PlaceSums& sums) const {
    std::map<PlaceKey, double> waits_ns;
    double sum_ns = 0;
    const auto end_of = [&](std::uint32_t other) { return cpu_.waits[other].end_ns; };
    auto next = std::ranges::upper_bound(others_by_end_, wait.start_ns, {}, end_of);
    for (int left = kMostWaitsOfWait; left > 0 && next != others_by_end_.end(); --left, ++next) {
      const CpuWait& other = cpu_.waits[*next];
      const std::int64_t begin_ns = std::max(wait.start_ns, other.start_ns);
      const std::int64_t end_ns = std::min(wait.end_ns, other.end_ns);
      if (end_ns <= begin_ns || !is_other_inside(other, wait, function))
        continue;
      const auto common_ns = static_cast<double>(end_ns - begin_ns);
      waits_ns[{other.kind, code_.innermost[other.stack], false}] += common_ns;
      sum_ns += common_ns;
    }
    if (sum_ns > kOneHolder * static_cast<double>(wait.end_ns - wait.start_ns))
      return;
    for (const auto& [place, common_ns] : waits_ns)
      sums.holder_waits_ns[place] += wait.weight * common_ns;
  }

  /// Names the holder's wait in the row of those that wait for its lock, and them in its own row.
  void add_waiting_holder(const PlaceSums& sums,
                          model::CpuWaitRow& row,
                          std::map<PlaceKey, model::CpuWaitRow>& row_of_place) const {
    const auto longest = std::ranges::max_element(
        sums.holder_waits_ns, {}, [](const auto& time_of) { return time_of.second; });
    if (longest == sums.holder_waits_ns.end())
      return;
    const auto& [holder, waits_ns] = *longest;
    if (waits_ns < kHolderWaitsMostly * sums.total_ns)
      return;
    row.meanwhile = {};
    row.holder_waits = code_place(session_, code_, holder.frame);
    row.holder_waits_for = holder.kind;
    model::CpuWaitRow& row_of_holder = row_of_place[holder];
    if (row.blocked_ns >= kHoldsUpMostly * row_of_holder.blocked_ns)
      row_of_holder.holds_up = row.place;
  }

  /// A lock that a function takes is mostly held by another thread in the same function: what that
  /// runs meanwhile.
  void add_meanwhile(const CpuWait& wait, std::uint32_t function, PlaceSums& sums) const {
    const auto time_of = [&](std::uint32_t sample) { return cpu_.samples[sample].at_ns; };
    auto next = std::ranges::lower_bound(samples_by_time_, wait.start_ns, {}, time_of);
    for (int left = kMostSamplesOfWait; left > 0 && next != samples_by_time_.end();
         --left, ++next) {
      const model::CpuSample& sample = cpu_.samples[*next];
      if (sample.at_ns >= wait.end_ns)
        return;
      if (is_other_inside(sample, wait, function))
        ++sums.meanwhile[code_.innermost[sample.stack]];
    }
  }

  /// Is it of another thread of the process, inside the function? `sample_or_wait`: of any thread.
  template <class SampleOrWait>
  [[nodiscard]] bool is_other_inside(const SampleOrWait& sample_or_wait,
                                     const CpuWait& wait,
                                     std::uint32_t function) const {
    const std::uint32_t thread = sample_or_wait.thread;
    const bool same_process = cpu_.threads[thread].pid == cpu_.threads[wait.thread].pid;
    return thread != wait.thread && same_process && passes(sample_or_wait.stack, function);
  }

  [[nodiscard]] bool passes(std::uint32_t stack, std::uint32_t function) const {
    for (; stack < cpu_.stacks.size(); stack = cpu_.stacks[stack].parent)
      if (cpu_.stacks[stack].frame == function)
        return true;
    return false;
  }

  [[nodiscard]] model::CpuWaitRow row_of(const PlaceKey& key, PlaceSums& sums) const {
    model::CpuWaitRow row;
    row.kind = key.kind;
    if (key.frame != kNone)
      row.place = code_place(session_, code_, key.frame);
    row.own = key.frame != kNone && code_.origins[key.frame] == Origin::kOwn;
    row.idle = key.idle;
    row.event_loop = sums.event_loop;
    row.to_the_end = sums.to_the_end;
    row.count = std::llround(sums.count);
    row.threads = std::ssize(sums.threads);
    row.total_ns = sums.total_ns;
    unite(sums.spans);
    for (const auto& [start, end] : sums.spans)
      row.blocked_ns += static_cast<double>(end - start);
    const auto holder = std::ranges::max_element(
        sums.meanwhile, {}, [](const auto& samples_of) { return samples_of.second; });
    if (holder != sums.meanwhile.end())
      row.meanwhile = code_place(session_, code_, holder->first);
    return row;
  }

  const Session& session_;
  const model::CpuProfile& cpu_;
  const UserCode& code_;
  std::vector<std::uint32_t> samples_by_time_;
  std::vector<std::uint32_t> others_by_end_;  ///< waits for something else than a lock
  std::map<PlaceKey, PlaceSums> places_;
};

}  // namespace

std::vector<model::CpuWaitRow> waits_by_function(const Session& session, const UserCode& code) {
  return WaitPlaces(session, code).rows();
}

}  // namespace rangescope::analyze
