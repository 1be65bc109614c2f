#include "analyze/time/steady.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "analyze/statistics/spread.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/busy.hpp"
#include "analyze/tree/recording.hpp"
#include "base/workers.hpp"
#include "model/backward.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr double kFar = 2;       // times the median: jitter of a settled loop stays well below
constexpr double kAsLong = 1.5;  // times a later one: nearer to it, the later one took as long
constexpr std::ptrdiff_t kAgain =
    2;  // later ones that took as long: where each epoch begins so, it is no warm-up
constexpr std::size_t kFewest = 3;  // of fewer it is unknown which one is unlike the others
constexpr double kFarOfTwo = 5;  // times the other of two instances, in which the GPU did as much
constexpr double kMoreWork =
    0.5;  // of the longer time is explained by a busier GPU: then it is no warm-up
constexpr double kWorthSaying = 0.05;  // less than that is noise of the estimate

/// Is the first of two instances warm-up? Only GPU work shows that both did the same.
bool is_warm_up_of_two(std::span<const std::int64_t> wall_ns, std::span<const double> busy_ns) {
  const bool took_longer =
      static_cast<double>(wall_ns[0]) >= kFarOfTwo * static_cast<double>(wall_ns[1]);
  const bool had_work = busy_ns[0] > 0 && busy_ns[1] > 0;
  return took_longer && had_work &&
         std::abs(busy_ns[0] - busy_ns[1]) <= kMoreWork * std::min(busy_ns[0], busy_ns[1]);
}

/// A module's ranges of the backward pass: each is of some of its functions, so that short ones
/// come before the one that loads a kernel.
bool has_different_parts(const Session& session, const Tree& tree, std::size_t number) {
  if (!tree.cells[number].module)
    return false;
  std::size_t root = number;
  while (tree.cells[root].parent != kNone)
    root = tree.cells[root].parent;
  return session.strings.view(tree.cells[root].name) == model::kBackward;
}

/// Occurrences in time order, and by what the first of them are found to warm the range up.
class WarmUps {
 public:
  /// `busy`: as find_phases() has it.
  WarmUps(const Session& session,
          const Tree& tree,
          const std::vector<std::uint32_t>& in_order,
          const UnlistedOfCell* unlisted,
          const std::vector<std::uint64_t>& busy)
      : session_(session), tree_(tree), in_order_(in_order), unlisted_(unlisted), busy_(busy) {}

  /// How many of the occurrences warm the range up. `parts_differ`: short ones may come before a
  /// long one.
  std::size_t count(bool parts_differ) {
    const std::size_t listed = in_order_.size();
    std::size_t occurrences = listed;
    if (unlisted_ != nullptr)
      occurrences += unlisted_->count();
    if (occurrences == 2 && listed == 2 && !busy_.empty())
      return static_cast<std::size_t>(is_first_of_two());
    if (occurrences < kFewest)
      return 0;
    std::size_t max_count = std::max<std::size_t>(1, occurrences / 3);
    if (unlisted_ != nullptr) {
      const auto first_listed = static_cast<std::size_t>(unlisted_->first_listed);
      max_count = std::min({max_count, listed, first_listed});
    }
    compare_with_those_from(max_count);
    std::size_t count = 0;
    for (std::size_t i = 0; i < max_count; ++i) {
      if (is_warm_up(i))
        count = i + 1;
      else if (!parts_differ)
        break;
    }
    return count;
  }

 private:
  [[nodiscard]] std::int64_t wall_ns(std::size_t i) const {
    return wall_of(session_, tree_, in_order_[i]);
  }
  [[nodiscard]] double busy_ns(std::size_t i) const {
    return static_cast<double>(busy_[in_order_[i]]);
  }

  [[nodiscard]] bool is_first_of_two() const {
    const std::array wall_of_both = {wall_ns(0), wall_ns(1)};
    const std::array busy_of_both = {busy_ns(0), busy_ns(1)};
    return is_warm_up_of_two(wall_of_both, busy_of_both);
  }

  /// What is usual: by the later occurrences, or as it was recorded where not all are listed.
  void compare_with_those_from(std::size_t first) {
    std::vector<std::int64_t> later_busy;
    for (std::size_t i = first; i < in_order_.size() && unlisted_ == nullptr; ++i) {
      later_.push_back(wall_ns(i));
      if (!busy_.empty())
        later_busy.push_back(static_cast<std::int64_t>(busy_[in_order_[i]]));
    }
    if (unlisted_ != nullptr)
      usual_ns_ = static_cast<double>(unlisted_->usual_ns);
    else
      usual_ns_ = static_cast<double>(upper_median(later_));
    usual_busy_ns_ = static_cast<double>(upper_median(std::move(later_busy)));
  }

  /// Much longer than usual, as hardly another is, and not for more GPU work.
  [[nodiscard]] bool is_warm_up(std::size_t i) const {
    const auto took_ns = static_cast<double>(wall_ns(i));
    if (took_ns <= kFar * usual_ns_)
      return false;
    const auto as_long = [&](std::int64_t later_ns) {
      return kAsLong * static_cast<double>(later_ns) >= took_ns;
    };
    if (std::count_if(later_.begin(), later_.end(), as_long) >= kAgain)
      return false;
    if (busy_.empty())
      return true;
    const double more_work_ns = busy_ns(i) - usual_busy_ns_;
    return more_work_ns <= kMoreWork * (took_ns - usual_ns_);
  }

  const Session& session_;
  const Tree& tree_;
  const std::vector<std::uint32_t>& in_order_;
  const UnlistedOfCell* unlisted_;
  const std::vector<std::uint64_t>& busy_;
  std::vector<std::int64_t> later_;  ///< wall times; empty where not all occurrences are listed
  double usual_ns_ = 0, usual_busy_ns_ = 0;
};

/// When the GPUs of each process worked, also for other processes. O(n log n) for n pieces of work.
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
    model::for_each_gpu_work(session, [&](const auto& works) {
      for (const auto& work : works)
        if (work.stream < card_of.size())
          worked_[card_of[work.stream]].add(work.start_ns, work.end_ns);
    });
    for (Stretches& worked : worked_)
      worked.finish();
  }

  /// The mean over the GPUs of the process.
  [[nodiscard]] double busy_ns(std::uint32_t process, std::int64_t start, std::int64_t end) const {
    if (process >= cards_of_process_.size() || cards_of_process_[process].empty())
      return 0;
    double sum = 0;
    for (const std::uint32_t card : cards_of_process_[process])
      sum += static_cast<double>(worked_[card].within(start, end));
    return sum / static_cast<double>(cards_of_process_[process].size());
  }

 private:
  std::vector<Stretches> worked_;  // by card
  std::vector<std::set<std::uint32_t>> cards_of_process_;
};

/// The wait was in a child of this node.
bool is_around(const Session& session,
               const Tree& tree,
               std::uint32_t node,
               const model::CounterWait& wait) {
  if (tree.nodes[node].kind != model::RangeKind::kPushPop)
    return false;
  const model::StringId domain = session.domains[wait.domain].name;
  for (std::size_t i = wait.path.size() - 1; i-- > 0; node = tree.nodes[node].parent) {
    if (node == kNone || tree.nodes[node].name != wait.path[i])
      return false;
    if (session.domains[tree.nodes[node].domain].name != domain)
      return false;
  }
  return true;
}

/// Time that the program stood still at starts of the children of each region, which lies within
/// it.
std::vector<double> waits_inside(const Regions& regions) {
  const auto& [session, options, tree, keys, by_cell] = regions;
  std::vector<double> inside(keys.size(), 0);
  for (const model::CounterWait& wait : session.counter_waits) {
    for (std::size_t r = 0; r < keys.size(); ++r) {
      const bool is_of_process = keys[r].process == kNone || keys[r].process == wait.process;
      if (keys[r].thread != kNone || !is_of_process)
        continue;
      const std::size_t depth = path_of(tree, session, keys[r].node).size();
      if (depth + 1 == wait.path.size() && is_around(session, tree, keys[r].node, wait))
        inside[r] += static_cast<double>(wait.ns);
    }
  }
  return inside;
}

/// Time that the program stood still outside all ranges.
double waits_outside(const Session& session) {
  double ns = 0;
  for (const model::CounterWait& wait : session.counter_waits)
    if (wait.path.size() == 1)
      ns += static_cast<double>(wait.ns);
  return ns;
}

/// Time within `begin_ns` and `end_ns`, outside all of `ranges`, in which some GPU worked on what
/// was launched during them. O(n) for work in order of its start, and a sort of what is not
/// covered.
double late_work_ns(const Session& session, Spans ranges) {
  unite(ranges);
  const auto within = [&](std::int64_t start, std::int64_t end, std::size_t& near) {
    const auto ends_after = [&](std::size_t i) {
      return i == ranges.size() || ranges[i].second >= end;
    };
    if (!ends_after(near) || (near > 0 && ends_after(near - 1))) {
      near = static_cast<std::size_t>(
          std::ranges::lower_bound(ranges, end, {}, &Spans::value_type::second) - ranges.begin());
    }
    return near < ranges.size() && ranges[near].first <= start;
  };
  Stretches covered, worked;  // by ranges; and by ranges or late work
  for (const auto& [start, end] : ranges)
    for (Stretches* stretches : {&covered, &worked})
      stretches->add(start, end);
  model::for_each_gpu_work(session, [&](const auto& works) {
    std::size_t near = 0, launched_near = 0;
    for (const auto& work : works) {
      const std::int64_t start = std::max(work.start_ns, session.begin_ns);
      const std::int64_t end = std::min(work.end_ns, session.end_ns);
      if (start >= end || work.launch >= session.launches.size() || within(start, end, near))
        continue;
      const std::int64_t launched = session.launches[work.launch].start_ns;
      if (within(launched, launched, launched_near))
        worked.add(start, end);
    }
  });
  covered.finish();
  worked.finish();
  return static_cast<double>(worked.within(session.begin_ns, session.end_ns) -
                             covered.within(session.begin_ns, session.end_ns));
}

/// Those whose every moment is known: not of closed push/pop ranges of threads that have unlisted
/// ones.
Spans whole_spans(const Session& session, const Tree& tree) {
  std::vector<char> thinned(session.threads.size(), 0);
  for (const model::OpenSpan& span : session.open_spans)
    thinned[span.thread] = 1;
  Spans spans;
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    if (tree.range_of[o] == kNone || tree.parent[o] != kNone)
      continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    if (is_beside_program(session, range))
      continue;
    if (thinned[range.thread] == 0 || range.kind == model::RangeKind::kStartEnd ||
        range.end_ns == kOpen)
      spans.emplace_back(range.start_ns, range.end_ns);
  }
  return spans;
}

double share_between_ranges(const model::OpenSpan& span) {
  const std::int64_t length = std::max<std::int64_t>(1, span.end_ns - span.start_ns);
  return static_cast<double>(span.between_ns) / static_cast<double>(length);
}

/// Time within Session::open_spans in which nothing was open: exact where one thread was at work,
/// else as if what is between the ranges of threads were spread evenly and independently. O(n log
/// n).
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
  if (edges.empty())
    return 0;
  for (const auto& [start, end] : whole_spans(session, tree)) {
    edges.push_back({start, nullptr, true});
    edges.push_back({end, nullptr, false});
  }
  std::ranges::sort(edges, {}, &Edge::at_ns);
  std::vector<const model::OpenSpan*> open;
  double between = 0;
  std::int64_t open_ranges = 0;  // of whole_spans()
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (i > 0 && open_ranges == 0 && !open.empty()) {
      auto part = static_cast<double>(edge.at_ns - edges[i - 1].at_ns);
      for (const model::OpenSpan* span : open)
        part *= share_between_ranges(*span);
      between += part;
    }
    if (edge.span == nullptr && edge.opens)
      ++open_ranges;
    else if (edge.span == nullptr)
      --open_ranges;
    else if (edge.opens)
      open.push_back(edge.span);
    else if (const auto span = std::ranges::find(open, edge.span); span != open.end())
      open.erase(span);
  }
  return between;
}

std::vector<std::uint64_t> histogram_of(const Occurrences& of) {
  std::vector<std::uint64_t> bins(model::kLengthBounds.size() + 1);
  const auto add = [&](std::int64_t length, std::uint64_t times) {
    const auto bound =
        std::lower_bound(model::kLengthBounds.begin(), model::kLengthBounds.end(), length);
    bins[static_cast<std::size_t>(bound - model::kLengthBounds.begin())] += times;
  };
  for (const auto* lengths : {&of.settled, &of.warm_ups, &of.slowed})
    for (const std::int64_t length : *lengths)
      add(length, 1);
  const model::Sketch& unlisted = of.unlisted.sketch;
  for (std::size_t i = 0; i < unlisted.counts().size(); ++i)
    add(model::Sketch::middle_of(unlisted.first() + i), unlisted.counts()[i]);
  return bins;
}

std::int64_t covered_ns(const Spans& spans) {
  std::int64_t sum = 0;
  for (const auto& [start, end] : spans)
    sum += length_ns(start, end);
  return sum;
}

/// When a cell was open, united. What is not listed is put behind the listed ones, the same share
/// of the time until the next one behind each: where threads work in step, their listed ones are.
Spans open_spans(const Regions& regions, std::uint32_t number) {
  Spans spans;
  for (const std::uint32_t o : regions.by_cell.of(number))
    if (const model::Range* range = closed_range(regions.session, regions.tree, o))
      spans.emplace_back(range->start_ns, range->end_ns);
  unite(spans);
  const UnlistedOfCell* unlisted = regions.tree.unlisted(number);
  if (unlisted == nullptr || spans.size() < 2)
    return spans;
  const std::int64_t first_to_last_ns = length_ns(spans.front().first, spans.back().second);
  const auto gaps = static_cast<double>(first_to_last_ns - covered_ns(spans));
  double share = 0;
  if (gaps > 0)
    share = std::min(1.0, static_cast<double>(unlisted->wall.moments.sum) / gaps);
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) {
    const auto gap = static_cast<double>(length_ns(spans[i].second, spans[i + 1].first));
    spans[i].second += static_cast<std::int64_t>(share * gap);
  }
  return spans;
}

/// Time of cells that is the program's, and what recording added to it.
struct ProgramTime {
  std::uint64_t inclusive = 0, recorded = 0;

  /// How long the spans are without what recording added, by its share of the cells' time.
  [[nodiscard]] std::int64_t without_recorded(const Spans& spans) const {
    if (recorded == 0)
      return covered_ns(spans);
    const auto length = static_cast<double>(covered_ns(spans));
    const auto program = static_cast<double>(inclusive);
    return static_cast<std::int64_t>(length * program / (program + static_cast<double>(recorded)));
  }
};

/// How long regions were open: a union over their cells, O(n log n) and 16 bytes an occurrence, but
/// for a process of one thread, whose push/pop ranges follow one another.
void add_open_times(const Regions& regions,
                    std::span<const std::uint32_t> members,
                    Occurrences& out) {
  const Session& session = regions.session;
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_process;
  for (const std::uint32_t r : members)
    for (const std::uint32_t number : regions.cells(r))
      if (const Cell& cell = regions.tree.cells[number]; cell.closed > 0)
        of_process[cell.process].push_back(number);
  Spans spans_of_run;
  ProgramTime time_of_run;
  for (const auto& [process, cells] : of_process) {
    const std::uint32_t thread = regions.tree.cells[cells.front()].thread;
    const bool in_turn = std::ranges::all_of(cells, [&](std::uint32_t number) {
      const Cell& cell = regions.tree.cells[number];
      return cell.thread == thread && cell.kind == model::RangeKind::kPushPop;
    });
    Spans spans;
    ProgramTime time_of_process;
    std::int64_t open = 0;
    for (const std::uint32_t number : cells) {
      const Cell& cell = regions.tree.cells[number];
      std::int64_t ns = std::min(
          static_cast<std::int64_t>(cell.inclusive_ns),  // below kDeepest one lies in another
          length_ns(cell.first_start_ns, session.end_ns));
      if (!in_turn || of_process.size() > 1) {
        const Spans spans_of_cell = open_spans(regions, number);
        if (cell.kind == model::RangeKind::kStartEnd)
          ns = std::min(ns, covered_ns(spans_of_cell));
        spans.insert(spans.end(), spans_of_cell.begin(), spans_of_cell.end());
      }
      if (cell.thread < session.threads.size())
        out.of_thread[session.threads[cell.thread].tid] += ns;
      open += ns;
      for (ProgramTime* time : {&time_of_process, &time_of_run}) {
        time->inclusive += cell.inclusive_ns;
        time->recorded += cell.recorded_ns;
      }
    }
    unite(spans);
    if (!in_turn)
      open = time_of_process.without_recorded(spans);
    out.of_process[process] = open;
    spans_of_run.insert(spans_of_run.end(), spans.begin(), spans.end());
  }
  unite(spans_of_run);
  if (of_process.size() == 1)
    out.open_ns = out.of_process.begin()->second;
  else
    out.open_ns = time_of_run.without_recorded(spans_of_run);
}

std::int64_t sum_of(const std::vector<std::int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

/// The list of its phase; phases with wall time only.
std::vector<std::int64_t>& list_of(Phase phase, Occurrences& out) {
  if (phase == Phase::kSlowed)
    return out.slowed;
  if (phase == Phase::kSettled)
    return out.settled;
  return out.warm_ups;
}

}  // namespace

Spans top_spans(const Session& session, const Tree& tree) {
  Spans spans = whole_spans(session, tree);
  for (const model::OpenSpan& span : session.open_spans)
    spans.emplace_back(span.start_ns, span.end_ns);
  return spans;
}

std::optional<model::Outside> outside_of(Spans spans,
                                         std::int64_t begin_ns,
                                         std::int64_t end_ns,
                                         double waits_ns) {
  if (spans.empty() || end_ns <= begin_ns)
    return std::nullopt;
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
  if (session.gpu_pauses.empty())
    return touched;
  touched.resize(tree.range_of.size());
  std::vector<Stretches> pauses(session.processes.size());
  for (const model::GpuPause& pause : session.gpu_pauses)
    if (pause.process < pauses.size())
      pauses[pause.process].add(pause.start_ns, pause.end_ns);
  for (Stretches& pauses_of_process : pauses)
    pauses_of_process.finish();
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    if (tree.range_of[o] == kNone)
      continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    const std::uint32_t process = tree.cells[tree.cell[o]].process;
    if (process >= pauses.size())
      continue;
    const Stretches& paused = pauses[process];
    touched[o] = paused.holds(range.start_ns) || paused.within(range.start_ns, range.end_ns) > 0;
  }
  return touched;
}

std::vector<Phase> find_phases(const Session& session,
                               const Tree& tree,
                               const Buckets& by_cell,
                               const std::vector<std::uint64_t>& busy) {
  std::vector<Phase> phases(tree.cell.size(), Phase::kWithout);
  // While the timeline is paused counters are collected, which slows ranges down.
  const std::vector<char> paused = touched_by_pause(session, tree);
  std::vector<std::uint32_t> in_order;
  for (std::size_t cell = 0; cell < tree.cells.size(); ++cell) {
    in_order.clear();
    for (const std::uint32_t o : by_cell.of(cell)) {
      if (closed_range(session, tree, o) == nullptr)
        continue;
      const bool is_slowed = !paused.empty() && paused[o] != 0;
      if (is_slowed) {
        phases[o] = Phase::kSlowed;
        continue;
      }
      phases[o] = Phase::kSettled;
      in_order.push_back(o);
    }
    const Earlier earlier{session, tree};
    if (!std::is_sorted(in_order.begin(), in_order.end(), earlier))
      std::sort(in_order.begin(), in_order.end(), earlier);
    const UnlistedOfCell* unlisted = tree.unlisted(static_cast<std::uint32_t>(cell));
    WarmUps warm_ups(session, tree, in_order, unlisted, busy);
    const std::size_t count = warm_ups.count(has_different_parts(session, tree, cell));
    for (std::size_t i = 0; i < count; ++i)
      phases[in_order[i]] = Phase::kWarmUp;
  }
  return phases;
}

bool Occurrences::without_slowed(const model::WallTime& wall) const {
  return !slowed.empty() && wall.profiler_ns > wall.recording_ns &&
         settled.size() + warm_ups.size() >= kFewest;
}

Occurrences occurrences_of(const Regions& regions,
                           const std::vector<Phase>& phases,
                           std::span<const std::uint32_t> members) {
  const Session& session = regions.session;
  const Tree& tree = regions.tree;
  Occurrences out;
  out.far_apart = session.far_apart;
  add_open_times(regions, members, out);
  // Of several regions those that nothing slowed.
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_thread;
  for (const std::uint32_t r : members) {
    for (const std::uint32_t number : regions.cells(r)) {
      const Cell& cell = tree.cells[number];
      if (const UnlistedOfCell* unlisted = tree.unlisted(number))
        out.unlisted.add(unlisted->wall);
      for (const std::uint32_t o : regions.by_cell.of(number)) {
        if (phases[o] == Phase::kWithout)
          continue;
        if (phases[o] != Phase::kSlowed && members.size() > 1)
          by_thread[cell.thread].push_back(o);
        else
          list_of(phases[o], out).push_back(wall_of(session, tree, o));
      }
    }
  }
  const std::vector<std::uint64_t> busy_unknown;
  for (auto& [thread, in_order] : by_thread) {
    std::sort(in_order.begin(), in_order.end(), Earlier{session, tree});
    const bool parts_differ = has_different_parts(session, tree, tree.cell[in_order.front()]);
    const std::size_t warm_up_count =
        WarmUps(session, tree, in_order, nullptr, busy_unknown).count(parts_differ);
    bool is_warm_up = true;
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      is_warm_up = is_warm_up && i < warm_up_count && phases[in_order[i]] == Phase::kWarmUp;
      const std::int64_t wall_ns = wall_of(session, tree, in_order[i]);
      if (is_warm_up)
        out.warm_ups.push_back(wall_ns);
      else
        out.settled.push_back(wall_ns);
    }
  }
  return out;
}

void add_occurrences(const Occurrences& from, bool across, model::Region& region) {
  std::vector<std::int64_t> lengths = from.settled, scratch;
  lengths.insert(lengths.end(), from.warm_ups.begin(), from.warm_ups.end());
  if (!from.without_slowed(region.wall))
    lengths.insert(lengths.end(), from.slowed.begin(), from.slowed.end());
  const model::Moments& unlisted = from.unlisted.moments;
  region.wall.unlisted = static_cast<std::int64_t>(unlisted.n);
  region.wall.open_ns = static_cast<double>(from.open_ns);
  region.wall.quantile_error = 0;
  if (unlisted.n > 0)
    region.wall.quantile_error = model::kRelativeError;
  region.wall.per_occurrence_ns = spread_of(lengths, from.unlisted, scratch);
  const auto warm_ups_ns = static_cast<double>(sum_of(from.warm_ups));
  const auto listed_ns = static_cast<double>(sum_of(from.settled));
  double longest_ns = 0;
  if (!from.warm_ups.empty())
    longest_ns = static_cast<double>(std::ranges::max(from.warm_ups));
  region.steady = steady_of(from.settled.size() + unlisted.n,
                            listed_ns + static_cast<double>(unlisted.sum),
                            spread_of(from.settled, from.unlisted, scratch),
                            std::ssize(from.warm_ups),
                            warm_ups_ns,
                            longest_ns);
  if (!across)
    return;
  PartSums processes, threads;
  for (const auto& [process, ns] : from.of_process)
    processes.add(process, ns);
  for (const auto& [tid, ns] : from.of_thread)
    threads.add(tid, ns);
  if (from.far_apart && processes.count > 1)
    return;
  region.across = across_of(processes, threads);
}

std::optional<model::Steady> steady_of(std::uint64_t settled,
                                       double settled_ns,
                                       const model::Spread& spread,
                                       std::int64_t warm_ups,
                                       double warm_up_ns,
                                       double longest_ns) {
  if (settled == 0)
    return std::nullopt;
  return model::Steady{
      static_cast<std::int64_t>(settled), warm_ups, warm_up_ns, longest_ns, settled_ns, spread, {}};
}

std::optional<model::Across> across_of(const PartSums& processes, const PartSums& threads) {
  model::Across out;
  out.of_threads = processes.count < 2;
  const PartSums& parts = out.of_threads ? threads : processes;
  if (parts.count < 2)
    return std::nullopt;
  out.parts = static_cast<std::int64_t>(parts.count);
  out.min_ns = number(parts.min);
  out.max_ns = number(parts.max);
  out.mean_ns = number(parts.sum) / static_cast<double>(parts.count);
  out.imbalance = imbalance_of(out.max_ns, out.mean_ns);
  out.slowest = static_cast<std::uint32_t>(parts.largest);
  return out;
}

/// Of the time between ranges, as of that inside them.
void take_out_recording(double recorded_ns, model::Outside& outside) {
  const double taken_ns = std::min(recorded_ns, outside.between_ns);
  if (taken_ns < kWorthTaking * outside.between_ns)
    return;
  outside.between_ns -= taken_ns;
  outside.wall_ns -= taken_ns;
  outside.profiler_ns += taken_ns;
}

namespace {

/// Fills Report::outside.
void add_outside(const Session& session, const Tree& tree, model::Report& report) {
  const Spans ranges = top_spans(session, tree);
  report.outside = outside_of(ranges, session.begin_ns, session.end_ns, waits_outside(session));
  if (report.outside) {
    const double between = between_ranges_ns(session, tree);
    report.outside->between_ns += between;
    report.outside->wall_ns += between;
    take_out_recording(recorded_outside_ns(session, tree), *report.outside);
  }
  if (report.outside && report.outside->wall_ns > 0)
    report.outside->late_ns = std::min(late_work_ns(session, ranges), report.outside->wall_ns);
}

/// What the occurrences of a region sum up to.
struct OccurrenceSums {
  double slowed = 0, slowed_ns = 0;
  /// Each instance's own GPU work, or where that is more, what its process's GPUs worked meanwhile.
  double busy_ns = 0;
  double settled_ns = 0;  ///< wall time of settled ones
};

/// Steady state of regions, and what measuring added to them.
class SteadyRegions {
 public:
  SteadyRegions(const Regions& regions,
                const std::vector<std::uint64_t>& busy,
                const std::vector<Phase>& phases,
                model::Report& report)
      : regions_(regions),
        busy_(busy),
        phases_(phases),
        report_(report),
        sums_(regions.keys.size()),
        added_to_children_(regions.keys.size(), 0) {
    if (!busy.empty())
      devices_.emplace(regions.session);
  }

  void run() {
    const int threads = threads_for(regions_.tree.range_of.size(), regions_.options.threads);
    base::parallel_for(sums_.size(), threads, [&](std::size_t r) {
      const Occurrences occurrences = add_region(static_cast<std::uint32_t>(r));
      if (devices_)
        add_busy(r, occurrences);
    });
    const std::vector<double> waits = waits_inside(regions_);
    for (std::size_t r = sums_.size(); r-- > 0;) {  // children before their parents
      take_out_measuring(r, waits[r]);
      add_busy_share(r);
    }
  }

 private:
  Occurrences add_region(std::uint32_t r) {
    Occurrences occurrences = occurrences_of(regions_, phases_, std::span(&r, 1));
    model::Region& region = report_.regions[r];
    add_occurrences(occurrences, regions_.keys[r].of_all(), region);
    if (regions_.options.histograms)
      region.wall.histogram = histogram_of(occurrences);
    sums_[r].slowed = static_cast<double>(occurrences.slowed.size());
    sums_[r].slowed_ns = static_cast<double>(sum_of(occurrences.slowed));
    return occurrences;
  }

  void add_busy(std::size_t r, const Occurrences& occurrences) {
    OccurrenceSums& sums = sums_[r];
    const Tree& tree = regions_.tree;
    sums.settled_ns = static_cast<double>(occurrences.unlisted.moments.sum);
    regions_.for_each_closed(r, [&](std::uint32_t o, const model::Range& range) {
      if (phases_[o] != Phase::kSettled)
        return;
      const std::uint32_t process = tree.cells[tree.cell[o]].process;
      const double device_ns = devices_->busy_ns(process, range.start_ns, range.end_ns);
      sums.busy_ns += std::max(static_cast<double>(busy_[o]), device_ns);
      sums.settled_ns += static_cast<double>(wall_of(regions_.session, tree, o));
    });
  }

  /// `waits_ns`: at begins of its children.
  void take_out_measuring(std::size_t r, double waits_ns) {
    model::Region& region = report_.regions[r];
    const OccurrenceSums& sums = sums_[r];
    double added = added_to_children_[r] + waits_ns;
    const bool has_usual = region.steady && region.steady->occurrences >= std::int64_t{kFewest};
    if (sums.slowed > 0 && has_usual) {
      const double usual =
          region.steady->wall_total_ns / static_cast<double>(region.steady->occurrences);
      added = std::max(added, sums.slowed_ns - usual * sums.slowed);
    }
    added = std::min(added, region.wall.inclusive_ns);
    const bool is_worth_saying = added > kWorthSaying * region.wall.inclusive_ns;
    if (!is_worth_saying)
      return;
    const Session& session = regions_.session;
    const auto duration = static_cast<double>(length_ns(session.begin_ns, session.end_ns));
    region.wall.profiler_ns += added;
    const double left = 1 - added / region.wall.inclusive_ns;
    region.wall.inclusive_ns -= added;
    if (region.wall.share > 0 && duration > 0)
      region.wall.share = region.wall.inclusive_ns / duration;
    region.wall.exclusive_ns =
        std::max(0.0, region.wall.exclusive_ns - (added - added_to_children_[r]));
    const std::uint32_t parent = regions_.keys[r].parent;
    if (parent != kNone)
      added_to_children_[parent] += added;
    if (sums.slowed > 0)
      add_region(static_cast<std::uint32_t>(r));  // now of those that were not slowed
    region.wall.open_ns *= left;
  }

  void add_busy_share(std::size_t r) {
    model::Region& region = report_.regions[r];
    const bool has_busy = region.gpu && region.gpu->busy_ns >= 0 && !busy_.empty();
    if (region.steady && has_busy && sums_[r].settled_ns > 0)
      region.steady->busy_share = sums_[r].busy_ns / sums_[r].settled_ns;
  }

  const Regions& regions_;
  const std::vector<std::uint64_t>& busy_;  ///< by occurrence; empty where there is no GPU work
  const std::vector<Phase>& phases_;
  model::Report& report_;
  std::optional<Devices> devices_;
  std::vector<OccurrenceSums> sums_;
  std::vector<double> added_to_children_;  ///< what measuring added, by region
};

}  // namespace

void add_steady(const Regions& regions,
                const std::vector<std::uint64_t>& busy,
                const std::vector<Phase>& phases,
                model::Report& report) {
  add_outside(regions.session, regions.tree, report);
  SteadyRegions(regions, busy, phases, report).run();
}

}  // namespace rangescope::analyze
