#include "analyze/tree/contexts.hpp"

#include <algorithm>

#include "analyze/statistics/order.hpp"
#include "analyze/tree/backward.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Launch;
using model::Range;
using model::RangeKind;
using model::Session;

/// The innermost range of one domain of one thread that has not ended yet.
struct Slot {
  std::uint32_t domain;
  std::uint32_t occurrence;
  std::int64_t end;
};

struct ThreadCursor {
  std::size_t next = 0, last = 0;  ///< occurrences not begun yet
  std::vector<Slot> slots;
  std::uint32_t context = 0;  ///< of its latest launch, by number within the process; 0: none
};

/// Ranges without a parent of one domain of the process, to see which threads have one open.
struct Roots {
  std::uint32_t domain;
  std::vector<std::uint32_t> occurrences;  ///< by start
  std::size_t next = 0;
  std::vector<std::uint32_t> open;
};

/// What a trace of PyTorch knows of an occurrence: whether it lies in a function of the backward
/// pass, and the operator of the forward pass that made the function. Both empty where no process
/// has operators.
struct Backward {
  std::vector<char> inside;
  std::vector<std::uint32_t> forward;  ///< empty unless asked for; kNone where there is none

  [[nodiscard]] bool has(std::uint32_t occurrence) const {
    return !inside.empty() && inside[occurrence] != 0;
  }
};

/// O(n log n).
Backward find_backward(const Session& session, const Tree& tree, bool forward) {
  Backward out;
  if (std::none_of(session.processes.begin(), session.processes.end(), [](const auto& p) {
        return p.operators;
      }))
    return out;
  out.inside.resize(tree.parent.size());
  if (forward)
    out.forward.assign(tree.parent.size(), kNone);
  std::vector<Numbered> operators, functions;
  for (std::uint32_t o = 0; o < tree.parent.size(); ++o) {
    if (tree.range_of[o] == kNone)
      continue;
    const Range& range = session.ranges[tree.range_of[o]];
    const bool function = session.strings.view(range.name).starts_with(model::kEvaluates);
    out.inside[o] = function || (tree.parent[o] != kNone && out.inside[tree.parent[o]] != 0);
    if (!forward || range.domain != 0 || range.attributes >= session.attributes.size())
      continue;
    const model::Attributes& attributes = session.attributes[range.attributes];
    if (attributes.payload_type != model::PayloadType::kInt64)
      continue;
    if (out.inside[o] != 0 && !function)
      continue;
    auto& numbered = function ? functions : operators;
    const std::uint32_t process = session.threads[range.thread].process;
    numbered.emplace_back(process, attributes.payload_i64, range.start_ns, o);
  }
  std::sort(operators.begin(), operators.end());
  for (const Numbered& function : functions)
    out.forward[std::get<3>(function)] = maker_of(function, operators);
  for (std::uint32_t o = 0; o < out.forward.size(); ++o)  // parents come first
    if (out.forward[o] == kNone && tree.parent[o] != kNone)
      out.forward[o] = out.forward[tree.parent[o]];
  return out;
}

class ProcessSweep {
 public:
  /// `threads`: those of the process. `place`: threads of the session to their place among those of
  /// their process.
  ProcessSweep(const Session& session,
               std::span<const Launch> calls,
               const Tree& tree,
               const Options& options,
               std::span<const std::uint32_t> threads,
               const std::vector<std::uint32_t>& place,
               const Backward& backward)
      : session_(session),
        calls_(calls),
        tree_(tree),
        backward_(backward),
        place_(place),
        nested_(options.domains == Domains::kNested),
        scope_(options.push_pop_scope) {
    for (const std::uint32_t thread : threads) {
      cursors_.push_back({tree.thread_begin[thread], tree.thread_begin[thread + 1], {}, 0});
      for (std::size_t o = tree.thread_begin[thread]; o < tree.thread_begin[thread + 1]; ++o) {
        const auto occurrence = static_cast<std::uint32_t>(o);
        const Range& range = range_of(occurrence);
        if (range.kind == RangeKind::kStartEnd)
          overlays_.push_back(occurrence);
        else if (is_inheritable_root(occurrence, range))
          roots_of(nested_ ? 0 : range.domain).occurrences.push_back(occurrence);
      }
    }
    const auto by_start = [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(range_of(a).start_ns, a) < std::pair(range_of(b).start_ns, b);
    };
    sort_nearly(overlays_, by_start);
    for (Roots& roots : roots_)
      sort_nearly(roots.occurrences, by_start);
    begin_ = {0, 0};
  }

  /// Launches in time order.
  void run(std::span<const std::uint32_t> launches, std::vector<std::uint32_t>& of_launch) {
    for (const std::uint32_t number : launches) {
      const Launch& launch = calls_[number];
      const std::int64_t start = launch.start_ns;
      const std::int64_t end = launch.end_ns == kOpen ? start : std::max(start, launch.end_ns);
      const std::uint32_t thread = place_[launch.thread];
      ThreadCursor& cursor = cursors_[thread];
      found_.clear();
      advance(cursor, start);
      for (const Slot& slot : cursor.slots) {
        const std::uint32_t inner = innermost(slot, end);
        if (inner != kNone)
          found_.push_back(inner);
      }
      const bool has_own = !found_.empty();
      if (!backward_.forward.empty())
        add_forward_operators();
      if (!overlays_.empty())
        add_overlays(start, end);
      bool is_undecided = false;
      for (Roots& roots : roots_)
        is_undecided |= !inherit(roots, thread, start, end);
      if (is_undecided && !has_own)
        ++undecided_launches_;
      of_launch[number] = context_of(cursor);
    }
  }

  std::vector<std::uint32_t> begin_, entries_;
  std::uint64_t undecided_launches_ = 0;

 private:
  const Range& range_of(std::uint32_t occurrence) const {
    return session_.ranges[tree_.range_of[occurrence]];
  }

  /// Can other threads inherit it?
  [[nodiscard]] bool is_inheritable_root(std::uint32_t occurrence, const Range& range) const {
    if (scope_ == PushPopScope::kThread || range.module)
      return false;
    if (tree_.parent[occurrence] != kNone || backward_.has(occurrence))
      return false;
    return !is_beside_program(session_, range);
  }

  Roots& roots_of(std::uint32_t domain) {
    for (Roots& roots : roots_) {
      if (roots.domain == domain)
        return roots;
    }
    roots_.push_back({domain, {}, 0, {}});
    return roots_.back();
  }

  void advance(ThreadCursor& cursor, std::int64_t to) const {
    for (; cursor.next < cursor.last; ++cursor.next) {
      const auto occurrence = static_cast<std::uint32_t>(cursor.next);
      const Range& range = range_of(occurrence);
      if (range.start_ns > to)
        break;
      if (range.kind == RangeKind::kStartEnd)
        continue;
      const std::uint32_t domain = nested_ ? 0 : range.domain;
      auto slot = std::find_if(cursor.slots.begin(), cursor.slots.end(), [&](const Slot& s) {
        return s.domain == domain;
      });
      if (slot == cursor.slots.end())
        slot = cursor.slots.insert(slot, {domain, kNone, 0});
      slot->occurrence = occurrence;
      slot->end = range.end_ns;
    }
    for (Slot& slot : cursor.slots) {  // what ended before now is over for every later launch too
      while (slot.occurrence != kNone && slot.end < to) {
        slot.occurrence = tree_.parent[slot.occurrence];
        if (slot.occurrence != kNone)
          slot.end = range_of(slot.occurrence).end_ns;
      }
    }
  }

  std::uint32_t innermost(const Slot& slot, std::int64_t end) const {
    std::uint32_t occurrence = slot.occurrence;
    if (occurrence == kNone || slot.end >= end)
      return occurrence;
    do {
      occurrence = tree_.parent[occurrence];
    } while (occurrence != kNone && range_of(occurrence).end_ns < end);
    return occurrence;
  }

  /// The operators of the forward pass that made the functions found so far.
  void add_forward_operators() {
    for (std::size_t i = found_.size(); i-- > 0;)
      if (const std::uint32_t forward = backward_.forward[found_[i]]; forward != kNone)
        found_.push_back(forward | kInherited);
  }

  /// Adds the start/end ranges of the process that are open from `start` to `end`. Calls come in
  /// order of their start: what has ended before is forgotten.
  void add_overlays(std::int64_t start, std::int64_t end) {
    for (; next_overlay_ < overlays_.size() && range_of(overlays_[next_overlay_]).start_ns <= start;
         ++next_overlay_) {
      open_overlays_.push_back(overlays_[next_overlay_]);
    }
    std::size_t kept = 0;
    for (const std::uint32_t occurrence : open_overlays_) {
      const std::int64_t until = range_of(occurrence).end_ns;
      if (until < start)
        continue;
      open_overlays_[kept++] = occurrence;
      if (until >= end)
        found_.push_back(occurrence);
    }
    open_overlays_.resize(kept);
  }

  /// False where several other threads have a range open, and none of them is chosen.
  bool inherit(Roots& roots, std::uint32_t thread, std::int64_t start, std::int64_t end) {
    if (scope_ == PushPopScope::kAuto && has_own_range(cursors_[thread], roots.domain, end))
      return true;
    find_owners(roots, thread, start, end);
    if (owners_.empty())
      return true;
    if (scope_ == PushPopScope::kAuto && owners_.size() != 1)
      return false;
    std::sort(owners_.begin(), owners_.end());
    for (const std::uint32_t owner : owners_) {
      advance(cursors_[owner], start);
      for (const Slot& slot : cursors_[owner].slots) {
        if (slot.domain != roots.domain)
          continue;
        std::uint32_t inner = innermost(slot, end);
        while (inner != kNone && range_of(inner).module)
          inner = tree_.parent[inner];  // modules are of their own thread's launches only
        if (inner != kNone)
          found_.push_back(inner | kInherited);
      }
    }
    return true;
  }

  [[nodiscard]] bool has_own_range(const ThreadCursor& cursor,
                                   std::uint32_t domain,
                                   std::int64_t end) const {
    return std::ranges::any_of(cursor.slots, [&](const Slot& slot) {
      if (slot.domain != domain)
        return false;
      const std::uint32_t inner = innermost(slot, end);
      return inner != kNone && !backward_.has(inner);
    });
  }

  /// Fills `owners_`: the other threads that have a range open from `start` to `end`.
  void find_owners(Roots& roots, std::uint32_t thread, std::int64_t start, std::int64_t end) {
    for (; roots.next < roots.occurrences.size() &&
           range_of(roots.occurrences[roots.next]).start_ns <= start;
         ++roots.next) {
      roots.open.push_back(roots.occurrences[roots.next]);
    }
    owners_.clear();
    std::size_t kept = 0;
    for (const std::uint32_t root : roots.open) {
      const Range& range = range_of(root);
      if (range.end_ns < start)
        continue;
      roots.open[kept++] = root;
      if (range.end_ns < end)
        continue;
      const std::uint32_t owner = place_[range.thread];
      if (owner != thread && std::ranges::find(owners_, owner) == owners_.end())
        owners_.push_back(owner);
    }
    roots.open.resize(kept);
  }

  std::uint32_t context_of(ThreadCursor& cursor) {
    if (found_.empty())
      return 0;
    if (cursor.context != 0) {
      const std::size_t first = begin_[cursor.context];
      const std::size_t count = begin_[cursor.context + 1] - first;
      if (std::ranges::equal(found_, std::span(entries_).subspan(first, count)))
        return cursor.context;
    }
    entries_.insert(entries_.end(), found_.begin(), found_.end());
    begin_.push_back(static_cast<std::uint32_t>(entries_.size()));
    cursor.context = static_cast<std::uint32_t>(begin_.size() - 2);
    return cursor.context;
  }

  const Session& session_;
  std::span<const Launch> calls_;
  const Tree& tree_;
  const Backward& backward_;
  const std::vector<std::uint32_t>& place_;
  bool nested_;
  PushPopScope scope_;
  std::vector<ThreadCursor> cursors_;
  std::vector<std::uint32_t> overlays_, open_overlays_;
  std::size_t next_overlay_ = 0;
  std::vector<Roots> roots_;
  std::vector<std::uint32_t> found_, owners_;
};

/// The place of each thread of the session among those of its process.
std::vector<std::uint32_t> places_in_process(const Session& session, const Buckets& threads) {
  std::vector<std::uint32_t> place(session.threads.size(), 0);
  for (std::size_t p = 0; p < session.processes.size(); ++p) {
    const auto threads_of_process = threads.of(p);
    for (std::uint32_t i = 0; i < threads_of_process.size(); ++i)
      place[threads_of_process[i]] = i;
  }
  return place;
}

/// What a sweep found, with the numbers of its process.
struct ProcessContexts {
  std::vector<std::uint32_t> begin, entries;  ///< as in Contexts
  std::uint64_t undecided_launches = 0;
};

/// Appends the contexts of a process, and counts those of its launches from where they are now.
void append_contexts(const ProcessContexts& process,
                     std::span<const std::uint32_t> launches,
                     Contexts& contexts) {
  contexts.undecided_launches += process.undecided_launches;
  if (process.begin.size() <= 2)
    return;
  const auto first_context = static_cast<std::uint32_t>(contexts.size() - 1);
  const auto first_entry = static_cast<std::uint32_t>(contexts.entries.size());
  for (std::size_t c = 2; c < process.begin.size(); ++c)
    contexts.begin.push_back(process.begin[c] + first_entry);
  contexts.entries.insert(contexts.entries.end(), process.entries.begin(), process.entries.end());
  if (first_context == 0)
    return;
  for (const std::uint32_t launch : launches) {
    if (contexts.of_launch[launch] != 0)
      contexts.of_launch[launch] += first_context;
  }
}

}  // namespace

Contexts build_contexts(const Session& session, const Tree& tree, const Options& options) {
  return build_contexts(session, tree, options, session.launches);
}

Contexts build_contexts(const Session& session,
                        const Tree& tree,
                        const Options& options,
                        std::span<const Launch> calls) {
  Contexts contexts;
  contexts.of_launch.assign(calls.size(), 0);
  const std::size_t processes = session.processes.size();
  const auto process_of = [&](std::uint32_t thread) -> std::size_t {
    if (thread >= session.threads.size())
      return processes;
    return session.threads[thread].process;
  };
  Buckets launches = bucket_sort(calls.size(), processes, [&](std::size_t l) {
    return std::min(processes, process_of(calls[l].thread));
  });
  contexts.foreign_launches = calls.size() - launches.items.size();
  const Buckets threads = bucket_sort(session.threads.size(), processes, [&](std::size_t t) {
    return std::min<std::size_t>(processes, session.threads[t].process);
  });
  const std::vector<std::uint32_t> place = places_in_process(session, threads);

  const auto order = largest_first(processes, [&](std::size_t p) { return launches.of(p).size(); });
  const Backward backward = find_backward(session, tree, options.backward_with_forward);
  std::vector<ProcessContexts> found(processes);
  const int helpers = threads_for(calls.size(), options.threads);
  base::parallel_for(processes, helpers, [&](std::size_t i) {
    const std::size_t p = order[i];
    const auto launches_of_process = launches.of(p);
    if (launches_of_process.empty())
      return;
    sort_nearly(launches_of_process, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(calls[a].start_ns, a) < std::pair(calls[b].start_ns, b);
    });
    ProcessSweep sweep(session, calls, tree, options, threads.of(p), place, backward);
    sweep.run(launches_of_process, contexts.of_launch);
    found[p] = {std::move(sweep.begin_), std::move(sweep.entries_), sweep.undecided_launches_};
  });

  for (std::size_t p = 0; p < processes; ++p) {
    append_contexts(found[p], launches.of(p), contexts);
    found[p] = {};  // freed at once: both copies of many processes would be large
  }
  return contexts;
}

}  // namespace rangescope::analyze
