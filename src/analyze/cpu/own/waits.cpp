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
/// Samples taken during a wait that are looked at to find what another thread runs meanwhile.
constexpr int kMostSamplesOfWait = 64;

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
  bool event_loop = false, to_the_end = false;
};

bool is_in_event_loop(const Session& session, std::uint32_t stack) {
  for (; stack < session.cpu.stacks.size(); stack = session.cpu.stacks[stack].parent) {
    const model::CpuFrame& frame = session.cpu.frames[session.cpu.stacks[stack].frame];
    const bool python = frame.kind == model::FrameKind::kPython;
    if (python && base::file_name(session.strings.view(frame.file)) == "base_events.py")
      return true;
  }
  return false;
}

class WaitPlaces {
 public:
  WaitPlaces(const Session& session, const UserCode& code)
      : session_(session), cpu_(session.cpu), code_(code) {
    for (std::uint32_t s = 0; s < cpu_.samples.size(); ++s) samples_by_time_.push_back(s);
    std::ranges::sort(samples_by_time_, {},
                      [&](std::uint32_t sample) { return cpu_.samples[sample].at_ns; });
    for (const CpuWait& wait : cpu_.waits)
      if (is_named_by_function(wait)) add(wait);
  }

  [[nodiscard]] std::vector<model::CpuWaitRow> rows() {
    std::vector<model::CpuWaitRow> rows;
    for (auto& [key, sums] : places_) rows.push_back(row_of(key, sums));
    std::ranges::stable_sort(rows, [](const model::CpuWaitRow& a, const model::CpuWaitRow& b) {
      return std::tuple(!a.idle, a.blocked_ns) > std::tuple(!b.idle, b.blocked_ns);
    });
    if (rows.size() > kMostWaitRows) rows.resize(kMostWaitRows);
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
    if (!in_own_function) frame = telling_frame(cpu_, wait.stack);
    PlaceSums& sums = places_[{wait.kind, frame, idle}];
    sums.count += wait.weight;
    sums.total_ns += wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
    sums.spans.emplace_back(wait.start_ns, wait.end_ns);
    sums.threads.insert(wait.thread);
    const std::int64_t half_ns = (session_.end_ns - session_.begin_ns) / 2;
    const bool lasts_long = wait.end_ns - wait.start_ns > half_ns;
    sums.to_the_end |= lasts_long && wait.end_ns + kNearTheEnd_ns >= session_.end_ns;
    if (!idle && !sums.event_loop) sums.event_loop = is_in_event_loop(session_, wait.stack);
    if (in_own_function && wait.kind == WaitKind::kLock && !idle) add_meanwhile(wait, frame, sums);
  }

  /// A lock that a function takes is mostly held by another thread in the same function: what that
  /// runs meanwhile.
  void add_meanwhile(const CpuWait& wait, std::uint32_t function, PlaceSums& sums) const {
    const auto time_of = [&](std::uint32_t sample) { return cpu_.samples[sample].at_ns; };
    auto next = std::ranges::lower_bound(samples_by_time_, wait.start_ns, {}, time_of);
    for (int left = kMostSamplesOfWait; left > 0 && next != samples_by_time_.end();
         --left, ++next) {
      const model::CpuSample& sample = cpu_.samples[*next];
      if (sample.at_ns >= wait.end_ns) return;
      const bool same_process = cpu_.threads[sample.thread].pid == cpu_.threads[wait.thread].pid;
      const bool other_thread = sample.thread != wait.thread;
      if (other_thread && same_process && passes(sample.stack, function))
        ++sums.meanwhile[code_.innermost[sample.stack]];
    }
  }

  [[nodiscard]] bool passes(std::uint32_t stack, std::uint32_t function) const {
    for (; stack < cpu_.stacks.size(); stack = cpu_.stacks[stack].parent)
      if (cpu_.stacks[stack].frame == function) return true;
    return false;
  }

  [[nodiscard]] model::CpuWaitRow row_of(const PlaceKey& key, PlaceSums& sums) const {
    model::CpuWaitRow row;
    row.kind = key.kind;
    if (key.frame != kNone) row.place = code_place(session_, code_, key.frame);
    row.own = key.frame != kNone && code_.origins[key.frame] == Origin::kOwn;
    row.idle = key.idle;
    row.event_loop = sums.event_loop;
    row.to_the_end = sums.to_the_end;
    row.count = std::llround(sums.count);
    row.threads = std::ssize(sums.threads);
    row.total_ns = sums.total_ns;
    unite(sums.spans);
    for (const auto& [start, end] : sums.spans) row.blocked_ns += static_cast<double>(end - start);
    const auto holder = std::ranges::max_element(
        sums.meanwhile, {}, [](const auto& samples_of) { return samples_of.second; });
    if (holder != sums.meanwhile.end()) row.meanwhile = code_place(session_, code_, holder->first);
    return row;
  }

  const Session& session_;
  const model::CpuProfile& cpu_;
  const UserCode& code_;
  std::vector<std::uint32_t> samples_by_time_;
  std::map<PlaceKey, PlaceSums> places_;
};

}  // namespace

std::vector<model::CpuWaitRow> waits_by_function(const Session& session, const UserCode& code) {
  return WaitPlaces(session, code).rows();
}

}  // namespace rangescope::analyze
