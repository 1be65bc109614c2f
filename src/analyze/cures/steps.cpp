#include "analyze/cures/steps.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analyze/statistics/spread.hpp"

namespace rangescope::analyze::cures {
namespace {

using replay::Id;
using replay::Span;

constexpr std::size_t kFewestSteps = 3;
/// Of what the program's thread launches: less is a part of the program, not its loop.
constexpr double kMostOfLaunches = 0.5;
/// Of the works behind a beginning, these are the same as behind the next one.
constexpr double kAlike = 0.9;
/// Of two distances the shorter one, where it is nearly as good.
constexpr double kNearlyAsGood = 0.97;
constexpr std::size_t kMostDistances = 64;

/// A thread, and what it launches in order.
struct LaunchingThread {
  Id thread = model::kNone;
  std::vector<Id> calls, works;  ///< of each work its call
  Span extent;                   ///< from its first launch to its last operation
};

std::optional<LaunchingThread> launches_of(const replay::Graph& graph,
                                           const replay::LaneIndex& lanes,
                                           const std::vector<std::vector<Id>>& works_of_call,
                                           Id lane) {
  LaunchingThread thread;
  thread.thread = graph.lanes[lane].thread;
  if (thread.thread == model::kNone)
    return std::nullopt;
  const auto operations = lanes.operations_of(lane);
  for (const Id call : operations) {
    for (const Id work : works_of_call[call]) {
      thread.calls.push_back(call);
      thread.works.push_back(work);
    }
  }
  if (thread.works.empty())
    return std::nullopt;
  thread.extent = {thread.thread,
                   graph.operations[thread.calls.front()].start_ns,
                   graph.operations[operations.back()].end_ns};
  return thread;
}

/// The first thread of a process, where it launches a part that counts: PyTorch's backward pass
/// has a thread of its own, which launches more. Else the one that launches most.
std::optional<LaunchingThread> stepping_thread(const model::Session& session,
                                               const replay::Graph& graph,
                                               const replay::LaneIndex& lanes,
                                               const std::vector<std::vector<Id>>& works_of_call) {
  constexpr std::size_t kPartThatCounts = 10;
  std::optional<LaunchingThread> most, most_of_first;
  for (Id lane = 0; lane < graph.lanes.size(); ++lane) {
    std::optional<LaunchingThread> thread = launches_of(graph, lanes, works_of_call, lane);
    if (!thread)
      continue;
    const model::Thread& recorded = session.threads[thread->thread];
    const bool is_first = session.processes[recorded.process].pid == recorded.tid;
    if (is_first && (!most_of_first || thread->works.size() > most_of_first->works.size()))
      most_of_first = thread;
    if (!most || thread->works.size() > most->works.size())
      most = std::move(thread);
  }
  const bool counts =
      most_of_first && kPartThatCounts * most_of_first->works.size() >= most->works.size();
  return counts ? most_of_first : most;
}

/// Steps that begin at these moments. The last one takes what the others take, or until the
/// thread's last operation.
std::vector<Span> spans_from(const std::vector<std::int64_t>& begins_ns,
                             const LaunchingThread& thread) {
  std::vector<Span> spans;
  std::vector<std::int64_t> lengths_ns;
  for (std::size_t step = 0; step + 1 < begins_ns.size(); ++step) {
    spans.push_back({thread.thread, begins_ns[step], begins_ns[step + 1]});
    lengths_ns.push_back(begins_ns[step + 1] - begins_ns[step]);
  }
  const std::int64_t last_ns =
      std::min(thread.extent.end_ns, begins_ns.back() + upper_median(lengths_ns));
  spans.push_back({thread.thread, begins_ns.back(), std::max(begins_ns.back(), last_ns)});
  return spans;
}

std::size_t launches_before(const replay::Graph& graph,
                            const LaunchingThread& thread,
                            std::int64_t moment_ns) {
  const auto start_of = [&](Id call) { return graph.operations[call].start_ns; };
  const auto next = std::ranges::lower_bound(thread.calls, moment_ns, {}, start_of);
  return static_cast<std::size_t>(next - thread.calls.begin());
}

bool hold_most(const std::vector<Span>& steps,
               const replay::Graph& graph,
               const LaunchingThread& thread) {
  const std::size_t inside = launches_before(graph, thread, steps.back().end_ns) -
                             launches_before(graph, thread, steps.front().start_ns);
  return static_cast<double>(inside) >= kMostOfLaunches * static_cast<double>(thread.works.size());
}

constexpr std::size_t kMostOfWarmUp = 4;  // one step of so many

/// Of steps that take more than twice as long as most.
class SlowSteps {
 public:
  explicit SlowSteps(std::span<const Span> steps) {
    std::vector<std::int64_t> lengths_ns;
    for (const Span& step : steps)
      lengths_ns.push_back(step.end_ns - step.start_ns);
    const std::int64_t longest_ns = 2 * upper_median(lengths_ns);
    for (const std::int64_t length_ns : lengths_ns)
      is_slow_.push_back(length_ns > longest_ns);
  }

  [[nodiscard]] bool operator[](std::size_t step) const { return is_slow_[step]; }
  /// Among the first `count` steps twice as often as behind them, or more.
  [[nodiscard]] bool gather_in_first(std::size_t count) const {
    const auto behind = is_slow_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto in_first = static_cast<std::size_t>(std::count(is_slow_.begin(), behind, true));
    const auto later = static_cast<std::size_t>(std::count(behind, is_slow_.end(), true));
    return in_first * (is_slow_.size() - count) >= 2 * later * count;
  }

 private:
  std::vector<bool> is_slow_;
};

// ---- Modules

struct Calls {
  std::vector<std::int64_t> begins_ns;
  std::size_t works = 0;  ///< that they launched
};

/// Calls of modules on that thread that are in no other module, by name.
std::map<model::StringId, Calls> outermost_modules(const model::Session& session,
                                                   const replay::Graph& graph,
                                                   const LaunchingThread& thread) {
  std::map<model::StringId, Calls> calls_by_name;
  std::int64_t open_until_ns = 0;
  for (const model::Range& range : session.ranges) {
    const bool is_module = range.module && range.thread == thread.thread;
    if (!is_module || range.end_ns == model::kOpen || range.start_ns < open_until_ns)
      continue;
    open_until_ns = range.end_ns;
    Calls& calls = calls_by_name[range.name];
    calls.begins_ns.push_back(range.start_ns);
    calls.works += launches_before(graph, thread, range.end_ns) -
                   launches_before(graph, thread, range.start_ns);
  }
  return calls_by_name;
}

/// Phases are modules too: an optimizer's step and a checkpoint launch less than the model.
FoundSteps steps_of_modules(const model::Session& session,
                            const replay::Graph& graph,
                            const LaunchingThread& thread) {
  const Calls* largest = nullptr;
  model::StringId name = 0;
  const auto calls_by_name = outermost_modules(session, graph, thread);
  for (const auto& [candidate, calls] : calls_by_name) {
    if (calls.begins_ns.size() < kFewestSteps)
      continue;
    if (largest != nullptr && calls.works <= largest->works)
      continue;
    largest = &calls;
    name = candidate;
  }
  if (largest == nullptr)
    return {};
  FoundSteps steps{spans_from(largest->begins_ns, thread), std::string(session.strings.view(name))};
  if (!hold_most(steps.spans, graph, thread))
    return {};
  return steps;
}

// ---- Sequences

/// What a work is called, as a number: a kernel's name, a copy's kind, a fill.
std::vector<std::uint64_t> keys_of(const model::Session& session,
                                   const replay::Graph& graph,
                                   const std::vector<Id>& works) {
  std::vector<std::uint64_t> keys;
  keys.reserve(works.size());
  for (const Id work : works) {
    const replay::Operation& operation = graph.operations[work];
    std::uint64_t name = 0;
    if (operation.kind == replay::Kind::kKernel)
      name = session.kernels[operation.source].name;
    if (operation.kind == replay::Kind::kCopy)
      name = static_cast<std::uint64_t>(session.copies[operation.source].kind);
    keys.push_back(name << 8 | static_cast<std::uint64_t>(operation.kind));
  }
  return keys;
}

/// Places of one key that lie about equally far from each other, most of the sequence long.
struct Beginning {
  std::vector<std::size_t> places;
  std::size_t distance = 0;
};

std::optional<Beginning> regular(std::vector<std::size_t> places, std::size_t length) {
  if (places.size() < kFewestSteps)
    return std::nullopt;
  std::vector<std::size_t> distances;
  for (std::size_t i = 1; i < places.size(); ++i)
    distances.push_back(places[i] - places[i - 1]);
  const std::size_t distance = upper_median(distances);
  const auto near = std::ranges::count_if(distances, [&](std::size_t other) {
    return 10 * other >= 9 * distance && 10 * other <= 11 * distance;
  });
  constexpr double kRegular = 0.6;
  const bool is_regular =
      static_cast<double>(near) >= kRegular * static_cast<double>(distances.size());
  const auto covered = static_cast<double>(places.back() - places.front());
  if (!is_regular || covered < kMostOfLaunches * static_cast<double>(length))
    return std::nullopt;
  return Beginning{std::move(places), distance};
}

double share_alike(const std::vector<std::uint64_t>& keys, const Beginning& beginning) {
  const std::size_t first = beginning.places.front();
  std::size_t alike = 0, compared = 0;
  for (std::size_t place = first; place + beginning.distance < keys.size(); ++place) {
    ++compared;
    alike += keys[place] == keys[place + beginning.distance] ? 1 : 0;
  }
  return compared == 0 ? 0 : static_cast<double>(alike) / static_cast<double>(compared);
}

/// The shortest distance at which the sequence comes again.
std::optional<Beginning> best_beginning(const std::vector<std::uint64_t>& keys) {
  std::map<std::uint64_t, std::vector<std::size_t>> places_of_key;
  for (std::size_t place = 0; place < keys.size(); ++place)
    places_of_key[keys[place]].push_back(place);
  std::map<std::size_t, Beginning> by_distance;  // of each distance the one that begins first
  for (auto& [key, places] : places_of_key) {
    std::optional<Beginning> beginning = regular(std::move(places), keys.size());
    if (!beginning)
      continue;
    const auto [found, is_new] = by_distance.try_emplace(beginning->distance, *beginning);
    const bool is_earlier = beginning->places.front() < found->second.places.front();
    if (!is_new && is_earlier)
      found->second = std::move(*beginning);
  }
  if (by_distance.size() > kMostDistances)
    return std::nullopt;
  std::vector<std::pair<double, const Beginning*>> shares;
  double best_share = 0;
  for (const auto& [distance, beginning] : by_distance) {
    shares.emplace_back(share_alike(keys, beginning), &beginning);
    best_share = std::max(best_share, shares.back().first);
  }
  for (const auto& [share, beginning] : shares) {
    if (share >= kAlike && share >= kNearlyAsGood * best_share)
      return *beginning;
  }
  return std::nullopt;
}

FoundSteps steps_of_sequence(const model::Session& session,
                             const replay::Graph& graph,
                             const LaunchingThread& thread) {
  const auto beginning = best_beginning(keys_of(session, graph, thread.works));
  if (!beginning)
    return {};
  std::vector<std::int64_t> begins_ns;
  for (const std::size_t place : beginning->places)
    begins_ns.push_back(graph.operations[thread.calls[place]].start_ns);
  FoundSteps steps{spans_from(begins_ns, thread), ""};
  if (!hold_most(steps.spans, graph, thread))
    return {};
  return steps;
}

}  // namespace

FoundSteps find_steps(const model::Session& session,
                      const replay::Graph& graph,
                      const replay::LaneIndex& lanes,
                      const std::vector<std::vector<Id>>& works_of_call) {
  const auto thread = stepping_thread(session, graph, lanes, works_of_call);
  if (!thread)
    return {};
  FoundSteps steps = steps_of_modules(session, graph, *thread);
  if (steps.spans.empty())
    steps = steps_of_sequence(session, graph, *thread);
  const auto warm_up = static_cast<std::ptrdiff_t>(warm_up_steps(steps.spans));
  steps.spans.erase(steps.spans.begin(), steps.spans.begin() + warm_up);
  return steps;
}

std::size_t warm_up_steps(std::span<const Span> steps) {
  const SlowSteps is_slow(steps);
  const std::size_t most = steps.size() / kMostOfWarmUp;
  std::size_t warm_up = 0;
  while (warm_up < most && is_slow[warm_up])
    ++warm_up;
  if (!is_slow.gather_in_first(most))
    return warm_up;
  std::size_t slow = warm_up;
  for (std::size_t step = warm_up; step < most; ++step) {
    if (!is_slow[step])
      continue;
    ++slow;
    const bool are_most_slow = 2 * slow > step + 1;
    if (are_most_slow)
      warm_up = step + 1;
  }
  return warm_up;
}

void extend_to_next_step(const Stretches& gpu_busy, std::vector<Span>& steps) {
  if (steps.size() < kFewestSteps)
    return;
  std::ranges::stable_sort(steps, {}, &Span::start_ns);
  const bool has_one_thread = std::ranges::all_of(
      steps, [&](const Span& step) { return step.thread == steps.front().thread; });
  if (!has_one_thread)
    return;
  std::vector<std::int64_t> distances_ns;
  for (std::size_t step = 0; step + 1 < steps.size(); ++step)
    distances_ns.push_back(steps[step + 1].start_ns - steps[step].start_ns);
  const std::int64_t longest_ns = 2 * upper_median(distances_ns);
  std::vector<Span> extended = steps;
  double inside_ns = 0, between_ns = 0, busy_ns = 0;
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    inside_ns += length_ns(steps[step]);
    const std::int64_t pause_ns = steps[step + 1].start_ns - steps[step].end_ns;
    if (pause_ns <= 0 || pause_ns > longest_ns)
      continue;
    between_ns += static_cast<double>(pause_ns);
    busy_ns += static_cast<double>(gpu_busy.within(steps[step].end_ns, steps[step + 1].start_ns));
    extended[step].end_ns = steps[step + 1].start_ns;
  }
  constexpr double kLeftOut = 0.1, kBusy = 0.5;
  const bool counts = between_ns > kLeftOut * (inside_ns + between_ns);
  if (counts && busy_ns >= kBusy * between_ns)
    steps = std::move(extended);
}

}  // namespace rangescope::analyze::cures
