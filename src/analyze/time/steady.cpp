#include "analyze/time/steady.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "analyze/statistics/imbalance.hpp"
#include "analyze/statistics/spread.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/time/windows.hpp"
#include "analyze/tree/busy.hpp"
#include "analyze/tree/recording.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr double kFar = 2;             // times the median: jitter of a settled loop stays well below
constexpr double kAsLong = 1.5;        // times a later one: nearer to it, the later one took as long
constexpr std::ptrdiff_t kAgain = 2;   // later ones that took as long: where each epoch begins so, it is no warm-up
constexpr std::size_t kFewest = 3;     // of fewer nobody can say which one is unlike the others
constexpr double kMoreWork = 0.5;      // of the longer time is explained by a busier GPU: then it is no warm-up
constexpr double kWorthSaying = 0.05;  // less than that is noise of the estimate

std::int64_t middle(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

std::size_t warm_ups(const Session& session, const Tree& tree, const std::vector<std::uint32_t>& in_order,
                     const UnlistedOfCell* unlisted, const std::vector<std::uint64_t>& busy) {
  const std::size_t listed = in_order.size(), n = listed + (unlisted == nullptr ? 0 : unlisted->count());
  std::size_t most = std::max<std::size_t>(1, n / 3);
  if (n < kFewest) return 0;
  std::vector<std::int64_t> later, later_busy;
  if (unlisted != nullptr) most = std::min({most, listed, static_cast<std::size_t>(unlisted->first_listed)});
  for (std::size_t i = most; i < listed && unlisted == nullptr; ++i) {
    later.push_back(wall_of(session, tree, in_order[i]));
    if (!busy.empty()) later_busy.push_back(static_cast<std::int64_t>(busy[in_order[i]]));
  }
  const auto usual = static_cast<double>(unlisted != nullptr ? unlisted->usual_ns : middle(later));
  const auto usual_busy = static_cast<double>(middle(std::move(later_busy)));
  std::size_t count = 0;
  for (; count < most; ++count) {
    const auto took = static_cast<double>(wall_of(session, tree, in_order[count]));
    const auto as_long = [&](std::int64_t each) { return kAsLong * static_cast<double>(each) >= took; };
    if (took <= kFar * usual || std::count_if(later.begin(), later.end(), as_long) >= kAgain) break;
    if (!busy.empty() && static_cast<double>(busy[in_order[count]]) - usual_busy > kMoreWork * (took - usual)) break;
  }
  return count;
}

namespace {

/// What one region's occurrences come to.
struct SteadySums {
  std::vector<std::int64_t> settled, untouched;
  model::Distribution unlisted;  ///< settled and untouched, all of them
  std::int64_t left_out = 0, slowed = 0;
  double left_out_ns = 0, longest_ns = 0, settled_ns = 0, slowed_ns = 0;
  double busy_ns = 0;  // each instance's own GPU work, or where that is more, what its process's GPUs worked meanwhile
  double traced_ns = 0;  // of settled_ns: with GPU work
};

/// When the GPUs of each process worked, whoever launched it. O(n log n) for n pieces of work.
class Devices {
 public:
  explicit Devices(const Session& session) {
    std::size_t cards = 0;
    const std::vector<std::uint32_t> card_of = cards_of_streams(session, cards);
    worked_.resize(cards);
    cards_of_process_.resize(session.processes.size());
    for (std::size_t stream = 0; stream < session.streams.size(); ++stream)
      if (session.streams[stream].process < cards_of_process_.size())
        cards_of_process_[session.streams[stream].process].insert(card_of[stream]);
    const auto add = [&](const auto& items) {
      for (const auto& each : items)
        if (each.stream < card_of.size()) worked_[card_of[each.stream]].add(each.start_ns, each.end_ns);
    };
    add(session.kernels);
    add(session.copies);
    add(session.memsets);
    add(session.graph_launches);
    for (Stretches& each : worked_) each.finish();
  }

  /// The mean over the GPUs of the process.
  [[nodiscard]] double busy_ns(std::uint32_t process, std::int64_t start, std::int64_t end) const {
    if (process >= cards_of_process_.size() || cards_of_process_[process].empty()) return 0;
    double sum = 0;
    for (const std::uint32_t card : cards_of_process_[process])
      sum += static_cast<double>(worked_[card].within(start, end));
    return sum / static_cast<double>(cards_of_process_[process].size());
  }

 private:
  std::vector<Stretches> worked_;  // by card
  std::vector<std::set<std::uint32_t>> cards_of_process_;
};

void take_out(model::Region& region, double added, SteadySums& sums, double duration_ns,
              std::vector<std::int64_t>& scratch) {
  region.wall.profiler_ns += added;
  region.wall.inclusive_ns -= added;
  if (region.wall.share > 0 && duration_ns > 0) region.wall.share = region.wall.inclusive_ns / duration_ns;
  if (sums.slowed > 0 && sums.untouched.size() >= kFewest)
    region.wall.per_occurrence_ns = spread_of(sums.untouched, sums.unlisted, scratch);
}

/// Time that the program stood still at begins of the children of each region, which lies within it.
std::vector<double> waits_inside(const Session& session, const Tree& tree, const std::vector<RegionKey>& keys) {
  std::vector<double> inside(keys.size(), 0);
  for (const model::CounterWait& wait : session.counter_waits) {
    for (std::size_t r = 0; r < keys.size(); ++r) {
      if (keys[r].thread != kNone || (keys[r].process != kNone && keys[r].process != wait.process)) continue;
      std::uint32_t node = keys[r].node;
      const std::size_t depth = path_of(tree, session, node).size();
      if (depth >= wait.path.size()) continue;
      bool same = tree.nodes[node].kind == model::RangeKind::kPushPop;
      for (std::size_t i = depth; same && i-- > 0; node = tree.nodes[node].parent)
        same = node != kNone && tree.nodes[node].name == wait.path[i] &&
               session.domains[tree.nodes[node].domain].name == session.domains[wait.domain].name;
      if (same && depth + 1 == wait.path.size()) inside[r] += static_cast<double>(wait.ns);
    }
  }
  return inside;
}

/// Time that the program stood still outside all ranges.
double waits_outside(const Session& session) {
  double ns = 0;
  for (const model::CounterWait& wait : session.counter_waits)
    if (wait.path.size() == 1) ns += static_cast<double>(wait.ns);
  return ns;
}

/// Adjoining and overlapping ones become one.
void unite(Spans& spans) {
  std::sort(spans.begin(), spans.end());
  std::size_t last = 0;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first <= spans[last].second)
      spans[last].second = std::max(spans[last].second, spans[i].second);
    else
      spans[++last] = spans[i];
  }
  if (!spans.empty()) spans.resize(last + 1);
}

/// Time within `begin_ns` and `end_ns`, outside all of `ranges`, in which some GPU worked on what was launched during
/// them. O(n) for work in order of its start, and a sort of what is not covered.
double late_work_ns(const Session& session, Spans ranges) {
  unite(ranges);
  const auto within = [&](std::int64_t start, std::int64_t end, std::size_t& near) {
    const auto ends_after = [&](std::size_t i) { return i == ranges.size() || ranges[i].second >= end; };
    if (!ends_after(near) || (near > 0 && ends_after(near - 1))) {
      near = static_cast<std::size_t>(std::ranges::lower_bound(ranges, end, {}, &Spans::value_type::second) -
                                      ranges.begin());
    }
    return near < ranges.size() && ranges[near].first <= start;
  };
  Stretches covered, worked;  // by ranges; and by ranges or late work
  for (const auto& [start, end] : ranges)
    for (Stretches* each : {&covered, &worked}) each->add(start, end);
  const auto look = [&](const auto& items) {
    std::size_t near = 0, launched_near = 0;
    for (const auto& each : items) {
      const std::int64_t start = std::max(each.start_ns, session.begin_ns), end = std::min(each.end_ns, session.end_ns);
      if (start >= end || each.launch >= session.launches.size() || within(start, end, near)) continue;
      const std::int64_t launched = session.launches[each.launch].start_ns;
      if (within(launched, launched, launched_near)) worked.add(start, end);
    }
  };
  look(session.kernels);
  look(session.copies);
  look(session.memsets);
  look(session.graph_launches);
  covered.finish();
  worked.finish();
  return static_cast<double>(worked.within(session.begin_ns, session.end_ns) -
                             covered.within(session.begin_ns, session.end_ns));
}

}  // namespace

bool is_beside_program(const Session& session, const model::Range& range) {
  if (range.thread >= session.threads.size() || range.domain >= session.domains.size()) return false;
  const std::uint32_t process = session.threads[range.thread].process;
  if (process >= session.processes.size() || !session.processes[process].operators) return false;
  const std::string_view domain = session.strings.view(session.domains[range.domain].name);
  return domain == "overhead" || domain == "gpu_annotation";
}

namespace {

/// Those whose every moment is known: not of closed push/pop ranges of threads that have unlisted ones.
Spans whole_spans(const Session& session, const Tree& tree) {
  std::vector<char> thinned(session.threads.size(), 0);
  for (const model::OpenSpan& span : session.open_spans) thinned[span.thread] = 1;
  Spans spans;
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    if (tree.range_of[o] == kNone || tree.parent[o] != kNone) continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    if (is_beside_program(session, range)) continue;
    if (thinned[range.thread] == 0 || range.kind == model::RangeKind::kStartEnd || range.end_ns == kOpen)
      spans.emplace_back(range.start_ns, range.end_ns);
  }
  return spans;
}

/// Time within Session::open_spans in which nothing was open: exact where one thread was at work, else as if what is
/// between the ranges of threads were spread evenly and independently. O(n log n).
double between_ranges_ns(const Session& session, const Tree& tree) {
  struct Edge {
    std::int64_t at_ns;
    const model::OpenSpan* span;  ///< null: nothing is between
    bool opens;
  };
  std::vector<Edge> edges;
  for (const model::OpenSpan& span : session.open_spans) {
    edges.push_back({span.start_ns, &span, true});
    edges.push_back({span.end_ns, &span, false});
  }
  if (edges.empty()) return 0;
  for (const auto& [start, end] : whole_spans(session, tree)) {
    edges.push_back({start, nullptr, true});
    edges.push_back({end, nullptr, false});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at_ns < b.at_ns; });
  std::vector<const model::OpenSpan*> open;
  double between = 0;
  std::int64_t whole = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0 && whole == 0 && !open.empty()) {
      auto part = static_cast<double>(edges[i].at_ns - edges[i - 1].at_ns);
      for (const model::OpenSpan* span : open)
        part *= static_cast<double>(span->between_ns) /
                static_cast<double>(std::max<std::int64_t>(1, span->end_ns - span->start_ns));
      between += part;
    }
    if (edges[i].span == nullptr)
      whole += edges[i].opens ? 1 : -1;
    else if (edges[i].opens)
      open.push_back(edges[i].span);
    else if (const auto at = std::find(open.begin(), open.end(), edges[i].span); at != open.end())
      open.erase(at);
  }
  return between;
}

}  // namespace

Spans top_spans(const Session& session, const Tree& tree) {
  Spans spans = whole_spans(session, tree);
  for (const model::OpenSpan& span : session.open_spans) spans.emplace_back(span.start_ns, span.end_ns);
  return spans;
}

std::optional<model::Outside> outside_of(Spans spans, std::int64_t begin_ns, std::int64_t end_ns, double waits_ns) {
  if (spans.empty() || end_ns <= begin_ns) return std::nullopt;
  for (auto& [start, end] : spans) {
    start = std::max(start, begin_ns);
    end = std::min(end, end_ns);
  }
  std::sort(spans.begin(), spans.end());
  model::Outside out;
  std::int64_t until = spans.front().first;
  out.before_ns = static_cast<double>(length_ns(begin_ns, until));
  for (const auto& [start, end] : spans) {
    out.between_ns += static_cast<double>(length_ns(until, start));
    until = std::max(until, end);
  }
  out.after_ns = static_cast<double>(length_ns(until, end_ns));
  out.profiler_ns = std::min(waits_ns, out.between_ns + out.before_ns);
  const double before = std::max(0.0, out.profiler_ns - out.between_ns);
  out.between_ns -= out.profiler_ns - before;
  out.before_ns -= before;
  out.wall_ns = out.before_ns + out.between_ns + out.after_ns;
  return out;
}

std::vector<char> touched_by_pause(const Session& session, const Tree& tree) {
  std::vector<char> touched;
  if (session.gpu_pauses.empty()) return touched;
  touched.resize(tree.range_of.size());
  std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::int64_t>>> pauses;  // of a process they are disjoint
  for (const model::GpuPause& pause : session.gpu_pauses)
    pauses[pause.process].emplace_back(pause.start_ns, pause.end_ns);
  for (auto& [process, spans] : pauses) std::sort(spans.begin(), spans.end());
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    if (tree.range_of[o] == kNone) continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    if (range.thread >= session.threads.size()) continue;
    const auto spans = pauses.find(session.threads[range.thread].process);
    if (spans == pauses.end()) continue;
    const auto next = std::lower_bound(spans->second.begin(), spans->second.end(), range.end_ns,
                                       [](const auto& span, std::int64_t end) { return span.first < end; });
    touched[o] = next != spans->second.begin() && std::prev(next)->second > range.start_ns;
  }
  return touched;
}

std::vector<Phase> find_phases(const Session& session, const Tree& tree, const Buckets& by_cell,
                               const std::vector<std::uint64_t>& busy) {
  std::vector<Phase> phases(tree.cell.size(), Phase::kWithout);
  // A timeline that is off slows nothing down; counters that are collected meanwhile do.
  const bool windows = in_windows(session);
  const std::vector<char> paused = windows ? std::vector<char>{} : touched_by_pause(session, tree);
  const std::vector<std::uint64_t> unknown;
  std::vector<std::uint32_t> in_order;
  for (std::size_t cell = 0; cell < tree.cells.size(); ++cell) {
    in_order.clear();
    for (const std::uint32_t o : by_cell.of(cell)) {
      if (tree.range_of[o] == kNone || session.ranges[tree.range_of[o]].end_ns == kOpen) continue;
      phases[o] = !paused.empty() && paused[o] != 0 ? Phase::kSlowed : Phase::kSettled;
      if (phases[o] == Phase::kSettled) in_order.push_back(o);
    }
    const Earlier earlier{session, tree};
    if (!std::is_sorted(in_order.begin(), in_order.end(), earlier))
      std::sort(in_order.begin(), in_order.end(), earlier);
    const UnlistedOfCell* unlisted = tree.unlisted(static_cast<std::uint32_t>(cell));
    const std::size_t warm = warm_ups(session, tree, in_order, unlisted, windows ? unknown : busy);
    for (std::size_t i = 0; i < warm; ++i) phases[in_order[i]] = Phase::kWarmUp;
  }
  return phases;
}

std::optional<model::Across> across_of(const Tree& tree, const Session& session,
                                       const std::vector<std::uint32_t>& cells) {
  std::map<std::uint32_t, double> processes, threads;
  for (const std::uint32_t number : cells) {
    const Cell& cell = tree.cells[number];
    if (cell.closed == 0) continue;
    processes[cell.process] += static_cast<double>(cell.inclusive_ns);
    if (cell.thread < session.threads.size())
      threads[session.threads[cell.thread].tid] += static_cast<double>(cell.inclusive_ns);
  }
  model::Across across;
  across.of_threads = processes.size() < 2;
  const auto& parts = across.of_threads ? threads : processes;
  if (parts.size() < 2) return std::nullopt;
  across.parts = static_cast<std::int64_t>(parts.size());
  across.min_ns = parts.begin()->second;
  for (const auto& [part, ns] : parts) {
    across.mean_ns += ns;
    across.min_ns = std::min(across.min_ns, ns);
    if (ns > across.max_ns || across.slowest == kNone) across.max_ns = ns, across.slowest = part;
  }
  across.mean_ns /= static_cast<double>(parts.size());
  across.imbalance = imbalance_of(across.max_ns, across.mean_ns);
  return across;
}

void add_steady(const Session& session, const Tree& tree, const std::vector<RegionKey>& keys, const Buckets& by_cell,
                const std::vector<std::uint64_t>& busy, const std::vector<Phase>& phases, model::Report& report) {
  const Spans ranges = top_spans(session, tree);
  report.outside = outside_of(ranges, session.begin_ns, session.end_ns, waits_outside(session));
  if (report.outside) {
    const double between = between_ranges_ns(session, tree);
    report.outside->between_ns += between;
    report.outside->wall_ns += between;
  }
  if (report.outside && report.outside->wall_ns > 0)
    report.outside->late_ns = std::min(late_work_ns(session, ranges), report.outside->wall_ns);
  const std::vector<double> waits = waits_inside(session, tree, keys);
  const auto duration = static_cast<double>(length_ns(session.begin_ns, session.end_ns));
  std::vector<double> inside(keys.size(), 0);  // what measuring added to children
  const std::vector<char> untraced = in_windows(session) ? touched_by_pause(session, tree) : std::vector<char>{};
  const std::optional<Devices> devices = busy.empty() ? std::nullopt : std::optional<Devices>(session);
  std::vector<std::int64_t> scratch;
  for (std::size_t r = keys.size(); r-- > 0;) {  // children before their parents
    model::Region& region = report.regions[r];
    SteadySums sums;
    std::vector<std::uint32_t> cells(tree.node_cells.begin() + static_cast<std::ptrdiff_t>(keys[r].first),
                                     tree.node_cells.begin() + static_cast<std::ptrdiff_t>(keys[r].last));
    for (const std::uint32_t cell : cells) {
      if (const UnlistedOfCell* more = tree.unlisted(cell)) {
        sums.unlisted.add(more->wall);
        sums.settled_ns += static_cast<double>(more->wall.moments.sum);
        if (!busy.empty()) sums.traced_ns += static_cast<double>(more->wall.moments.sum);
      }
      for (const std::uint32_t o : by_cell.of(cell)) {
        if (phases[o] == Phase::kWithout) continue;
        const std::int64_t length = wall_of(session, tree, o);
        const auto ns = static_cast<double>(length);
        if (phases[o] == Phase::kSlowed) {
          ++sums.slowed;
          sums.slowed_ns += ns;
          continue;
        }
        sums.untouched.push_back(length);
        if (phases[o] == Phase::kWarmUp) {
          ++sums.left_out;
          sums.left_out_ns += ns;
          sums.longest_ns = std::max(sums.longest_ns, ns);
          continue;
        }
        sums.settled.push_back(length);
        sums.settled_ns += ns;
        if (busy.empty() || (!untraced.empty() && untraced[o] != 0)) continue;
        const model::Range& range = session.ranges[tree.range_of[o]];
        const double device_ns = devices->busy_ns(tree.cells[cell].process, range.start_ns, range.end_ns);
        sums.busy_ns += std::max(static_cast<double>(busy[o]), device_ns);
        sums.traced_ns += ns;
      }
    }
    double added = inside[r] + waits[r];
    if (sums.slowed > 0 && sums.settled.size() >= kFewest) {
      const double usual = sums.settled_ns / static_cast<double>(sums.settled.size());
      added = std::max(added, sums.slowed_ns - usual * static_cast<double>(sums.slowed));
    }
    added = std::min(added, region.wall.inclusive_ns);
    if (added > kWorthSaying * region.wall.inclusive_ns) {
      take_out(region, added, sums, duration, scratch);
      region.wall.exclusive_ns = std::max(0.0, region.wall.exclusive_ns - (added - inside[r]));
      if (keys[r].parent != kNone) inside[keys[r].parent] += added;
    }
    if (!sums.settled.empty()) {
      model::Steady steady;
      steady.occurrences = std::ssize(sums.settled) + static_cast<std::int64_t>(sums.unlisted.moments.n);
      steady.left_out = sums.left_out;
      steady.left_out_ns = sums.left_out_ns;
      steady.longest_ns = sums.longest_ns;
      steady.wall_total_ns = sums.settled_ns;
      steady.wall_ns = spread_of(sums.settled, std::move(sums.unlisted), scratch);
      const bool known = region.gpu && region.gpu->busy_ns >= 0 && !busy.empty();
      if (known && sums.traced_ns > 0) steady.busy_share = sums.busy_ns / sums.traced_ns;
      region.steady = steady;
    }
    if (keys[r].process == kNone && keys[r].thread == kNone) region.across = across_of(tree, session, cells);
  }
}

}  // namespace rangescope::analyze
