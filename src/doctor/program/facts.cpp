#include "doctor/program/facts.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"

namespace rangescope::doctor {
namespace {

using model::kNone;
using model::kOpen;
using model::RangeKind;

/// A path: parent path and a name. The same over all threads and processes.
struct Node {
  std::uint32_t parent = kNone;
  std::uint32_t domain = 0;
  model::StringId name = 0;
  RangeKind kind = RangeKind::kPushPop;
  std::uint64_t occurrences = 0, unclosed = 0, registered = 0, kernels = 0, graph_launches = 0;
  std::int64_t total_ns = 0;
};

/// What one launching call caused.
struct Work {
  std::uint32_t kernels = 0, copies = 0, memsets = 0, graphs = 0;
  std::int64_t last_end_ns = 0;
  std::uint64_t names = 0, shapes = 0;  ///< hashes of the sequence of kernels, of names alone and with configurations
  std::vector<std::uint32_t> contexts;
};

struct Occurrence {
  std::int64_t start_ns = 0, end_ns = 0;
  bool open = false, blind = false;
  std::uint32_t thread = 0, process = 0;
  RangeKind kind = RangeKind::kPushPop;
  std::int64_t last_work_ns = 0;
  std::uint64_t names = 0, shapes = 0;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ (value + 0x9e3779b97f4a7c15ull)) * 0x100000001b3ull;
}

/// Occurrences of one thread or process by start, with the latest end so far, to find what was open at a moment.
class Intervals {
 public:
  void add(std::size_t occurrence) { items_.push_back(occurrence); }
  void finish(const std::vector<Occurrence>& all) {
    std::stable_sort(items_.begin(), items_.end(),
                     [&](std::size_t a, std::size_t b) { return all[a].start_ns < all[b].start_ns; });
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    for (const std::size_t item : items_) latest_.push_back(latest = std::max(latest, all[item].end_ns));
  }
  /// The occurrence that began last and is open at `at`; kNowhere where none is.
  [[nodiscard]] std::size_t open_at(std::int64_t at, const std::vector<Occurrence>& all) const {
    auto next = std::upper_bound(items_.begin(), items_.end(), at,
                                 [&](std::int64_t time, std::size_t item) { return time < all[item].start_ns; });
    while (next != items_.begin()) {
      --next;
      if (latest_[static_cast<std::size_t>(next - items_.begin())] < at) break;
      if (all[*next].end_ns >= at) return *next;
    }
    return kNowhere;
  }
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

 private:
  std::vector<std::size_t> items_;
  std::vector<std::int64_t> latest_;
};

class Gatherer {
 public:
  explicit Gatherer(const model::Session& session) : session_(session) {}

  ProgramFacts run(const model::RangeSelection& ranges) {
    whole_program();
    gpu_work();
    place_ranges();
    work_by_node();
    order_nodes();
    for (const model::RangeTerm& term : ranges.include) facts_.meant.push_back(meant(term, ranges.exclude));
    return std::move(facts_);
  }

 private:
  [[nodiscard]] std::string text(model::StringId id) const { return std::string(session_.strings.view(id)); }
  [[nodiscard]] std::uint32_t process_of(std::uint32_t thread) const {
    return thread < session_.threads.size() ? session_.threads[thread].process : 0;
  }

  void whole_program() {
    facts_.processes = session_.processes.size();
    facts_.occurrences = session_.ranges.size();
    facts_.kernels = session_.kernels.size();
    facts_.graph_launches = session_.graph_launches.size();
    facts_.copies = session_.copies.size();
    facts_.duration_ns = static_cast<double>(session_.end_ns - session_.begin_ns);
    facts_.cuda = !session_.clock.gpu.empty() || !session_.devices.empty() || !session_.launches.empty() ||
                  !session_.kernels.empty();
    for (const model::Loss& loss : session_.losses) {
      if (loss.kind == "gpu_unavailable") {
        facts_.gpu_unavailable = loss.detail;
        facts_.cuda = true;
      }
      if (loss.kind == "gpu_partial" || loss.kind == "dropped_gpu_records" || loss.kind == "cupti_failed" ||
          loss.kind == "gpu_stream_not_closed" || loss.kind == "unfinished_gpu_work")
        facts_.gpu_lost += (facts_.gpu_lost.empty() ? "" : "; ") + loss.detail;
      if (loss.kind == "no_capture_file") facts_.unrecorded = loss.detail;
      if (loss.kind == "gpu_stream_not_closed") not_closed_ = true;
      if (loss.kind == "pop_without_push") facts_.unbalanced_pops = loss.count;
    }
    std::set<std::uint32_t> with_ranges;
    std::set<std::string> domains;
    for (const model::Range& range : session_.ranges) {
      with_ranges.insert(process_of(range.thread));
      domains.insert(text(session_.domains[range.domain].name));
    }
    facts_.processes_with_ranges = with_ranges.size();
    // CUDA makes a process known too; without CUDA it was NVTX.
    facts_.nvtx = !session_.ranges.empty() || !session_.marks.empty() || session_.domains.size() > 1 ||
                  !session_.categories.empty() || !session_.resources.empty() ||
                  (!session_.processes.empty() && !facts_.cuda);
    facts_.domains.assign(domains.begin(), domains.end());
    // A process is below another one when its chain of parents leads there.
    std::unordered_map<std::uint32_t, std::uint32_t> by_pid;
    for (std::uint32_t i = 0; i < session_.processes.size(); ++i) by_pid.try_emplace(session_.processes[i].pid, i);
    parent_.assign(session_.processes.size(), kNone);
    for (std::uint32_t i = 0; i < session_.processes.size(); ++i)
      if (const auto found = by_pid.find(session_.processes[i].parent_pid); found != by_pid.end() && found->second != i)
        parent_[i] = found->second;
  }

  void gpu_work() {
    work_.resize(session_.launches.size());
    const auto add = [&](std::uint32_t launch, std::int64_t end, std::uint32_t stream) -> Work* {
      if (launch >= work_.size()) return nullptr;
      Work& work = work_[launch];
      work.last_end_ns = std::max(work.last_end_ns, end);
      if (stream < session_.streams.size()) {
        const std::uint32_t context = session_.streams[stream].context;
        if (std::find(work.contexts.begin(), work.contexts.end(), context) == work.contexts.end())
          work.contexts.push_back(context);
      }
      return &work;
    };
    for (const model::Kernel& kernel : session_.kernels) {
      Work* work = add(kernel.launch, kernel.end_ns, kernel.stream);
      if (!work) {
        ++facts_.orphan_kernels;
        continue;
      }
      ++work->kernels;
      work->names = mix(work->names, kernel.name + 1);
      work->shapes = mix(mix(work->shapes, kernel.name + 1), kernel.shape + 1);
    }
    for (const model::Copy& copy : session_.copies)
      if (Work* work = add(copy.launch, copy.end_ns, copy.stream)) ++work->copies;
    for (const model::Memset& set : session_.memsets)
      if (Work* work = add(set.launch, set.end_ns, set.stream)) ++work->memsets;
    for (const model::GraphLaunch& graph : session_.graph_launches) {
      (void)add(graph.launch, graph.end_ns, graph.stream);
    }
    for (std::uint32_t i = 0; i < session_.launches.size(); ++i) {
      const model::Launch& call = session_.launches[i];
      if (call.kind == model::LaunchKind::kGraph) {
        work_[i].graphs = 1;
        work_[i].names = mix(work_[i].names, 7);
      }
      by_start_.push_back(i);
      const std::uint32_t process = process_of(call.thread);
      const auto [at, fresh] = first_call_.try_emplace(process, call.start_ns);
      if (!fresh) at->second = std::min(at->second, call.start_ns);
    }
    // A killed process takes its last GPU records with it: what ended after the last work that is known is not judged.
    if (not_closed_)
      for (std::uint32_t i = 0; i < session_.launches.size(); ++i)
        if (work_[i].kernels + work_[i].graphs > 0) {
          std::int64_t& horizon = horizon_.try_emplace(process_of(session_.launches[i].thread), 0).first->second;
          horizon = std::max(horizon, session_.launches[i].start_ns);
        }
    std::stable_sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return session_.launches[a].start_ns < session_.launches[b].start_ns;
    });
  }

  std::uint32_t intern(std::uint32_t parent, const model::Range& range) {
    // Domains are told apart by name: each process has its own numbers.
    const model::StringId domain = session_.domains[range.domain].name;
    const std::pair key{std::pair{parent, range.name}, std::pair{domain, range.kind}};
    const auto [at, fresh] = node_at_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) {
      Node node;
      node.parent = parent;
      node.domain = range.domain;
      node.name = range.name;
      node.kind = range.kind;
      nodes_.push_back(node);
    }
    return at->second;
  }

  /// Gives every range its path: one stack for each domain of a thread, in the order in which ranges were pushed.
  void place_ranges() {
    node_of_.resize(session_.ranges.size());
    depth_of_.resize(session_.ranges.size());
    std::map<std::pair<std::uint32_t, model::StringId>, std::vector<std::size_t>> stacks;
    for (std::size_t i = 0; i < session_.ranges.size(); ++i) {
      const model::Range& range = session_.ranges[i];
      std::uint32_t parent = kNone;
      if (range.kind == RangeKind::kPushPop) {
        auto& stack = stacks[{range.thread, session_.domains[range.domain].name}];
        while (!stack.empty() && (session_.ranges[stack.back()].end_ns < range.end_ns ||
                                  session_.ranges[stack.back()].end_ns < range.start_ns))
          stack.pop_back();
        if (!stack.empty()) parent = node_of_[stack.back()];
        depth_of_[i] = static_cast<std::uint32_t>(stack.size());
        stack.push_back(i);
      }
      const std::uint32_t node = node_of_[i] = intern(parent, range);
      Node& its = nodes_[node];
      ++its.occurrences;
      if (range.registered) ++its.registered;
      if (range.end_ns == kOpen)
        ++its.unclosed;
      else
        its.total_ns += range.end_ns - range.start_ns;
    }
  }

  /// Kernels launched while each path was open: push/pop ranges of the launching thread, start/end ranges of its
  /// process.
  void work_by_node() {
    bare_.assign(session_.launches.size(), true);
    std::map<std::pair<bool, std::uint32_t>, std::vector<std::size_t>> by_scope;
    for (std::size_t i = 0; i < session_.ranges.size(); ++i) {
      const model::Range& range = session_.ranges[i];
      const bool span = range.kind == RangeKind::kStartEnd;
      by_scope[{span, span ? process_of(range.thread) : range.thread}].push_back(i);
    }
    struct Cursor {
      std::vector<std::size_t> ranges, open;
      std::size_t next = 0;
    };
    std::map<std::pair<bool, std::uint32_t>, Cursor> cursors;
    for (auto& [scope, ranges] : by_scope) {
      std::stable_sort(ranges.begin(), ranges.end(), [&](std::size_t a, std::size_t b) {
        return session_.ranges[a].start_ns < session_.ranges[b].start_ns;
      });
      cursors[scope].ranges = std::move(ranges);
    }
    std::vector<std::uint32_t> counted;
    for (const std::uint32_t index : by_start_) {
      const Work& work = work_[index];
      if (work.kernels == 0 && work.graphs == 0) continue;
      const model::Launch& call = session_.launches[index];
      for (const auto& scope : {std::pair{false, call.thread}, std::pair{true, process_of(call.thread)}}) {
        const auto found = cursors.find(scope);
        if (found == cursors.end()) continue;
        Cursor& cursor = found->second;
        while (cursor.next < cursor.ranges.size() &&
               session_.ranges[cursor.ranges[cursor.next]].start_ns <= call.start_ns)
          cursor.open.push_back(cursor.ranges[cursor.next++]);
        std::erase_if(cursor.open, [&](std::size_t i) { return session_.ranges[i].end_ns < call.start_ns; });
        if (!scope.first && !cursor.open.empty()) bare_[index] = false;
        counted.clear();
        for (const std::size_t i : cursor.open) {
          const std::uint32_t node = node_of_[i];
          if (std::find(counted.begin(), counted.end(), node) != counted.end()) continue;
          counted.push_back(node);
          nodes_[node].kernels += work.kernels;
          nodes_[node].graph_launches += work.graphs;
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::string> path_of(std::uint32_t node) const {
    std::vector<std::string> path;
    for (std::uint32_t at = node; at != kNone; at = nodes_[at].parent) path.push_back(text(nodes_[at].name));
    std::reverse(path.begin(), path.end());
    return path;
  }

  void order_nodes() {
    std::vector<std::uint32_t> order(nodes_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return nodes_[a].occurrences > nodes_[b].occurrences; });
    seen_at_.resize(nodes_.size());
    for (const std::uint32_t node : order) {
      const Node& from = nodes_[node];
      seen_at_[node] = facts_.ranges.size();
      SeenRange seen;
      seen.domain = text(session_.domains[from.domain].name);
      seen.path = path_of(node);
      seen.kind = from.kind;
      seen.occurrences = from.occurrences;
      seen.unclosed = from.unclosed;
      seen.kernels = from.kernels;
      seen.graph_launches = from.graph_launches;
      seen.total_ns = from.total_ns;
      seen.registered = from.registered == from.occurrences;
      facts_.ranges.push_back(std::move(seen));
    }
  }

  [[nodiscard]] bool matches(const model::RangeExpression& expression, std::uint32_t node) const {
    const SeenRange& seen = facts_.ranges[seen_at_[node]];
    const std::vector<std::string_view> path(seen.path.begin(), seen.path.end());
    return expression.names_region(seen.domain, path, seen.kind);
  }

  RangeFacts meant(const model::RangeTerm& term, const std::vector<model::RangeTerm>& excluded) {
    RangeFacts out;
    out.term = {term.written, {term.forms.front()}};
    out.kind_said = term.kind_said();
    std::vector<bool> chosen(nodes_.size(), false);
    for (const model::RangeExpression& form : term.forms) {
      bool any = false;
      std::vector<bool> inside(nodes_.size(), false);
      for (std::uint32_t node = 0; node < nodes_.size(); ++node) {  // parents have lower numbers
        const std::uint32_t parent = nodes_[node].parent;
        inside[node] = (parent != kNone && inside[parent]) || matches(form, node);
        if (!inside[node] || (parent != kNone && inside[parent])) continue;
        const bool left_out = std::any_of(excluded.begin(), excluded.end(), [&](const model::RangeTerm& each) {
          return std::any_of(each.forms.begin(), each.forms.end(),
                             [&](const model::RangeExpression& other) { return matches(other, node); });
        });
        if (!left_out) chosen[node] = any = true;
      }
      if (any && out.seen.empty()) out.term.forms = {form};
      for (std::uint32_t node = 0; node < nodes_.size(); ++node)
        if (chosen[node] && std::find(out.seen.begin(), out.seen.end(), seen_at_[node]) == out.seen.end())
          out.seen.push_back(seen_at_[node]);
    }
    std::sort(out.seen.begin(), out.seen.end());
    const auto occurrences = occurrences_of(chosen, out);
    work_inside(occurrences, out);
    return out;
  }

  std::vector<Occurrence> occurrences_of(const std::vector<bool>& chosen, RangeFacts& out) const {
    std::vector<Occurrence> all;
    std::set<std::uint32_t> threads, processes;
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i < session_.ranges.size(); ++i) {
      if (!chosen[node_of_[i]]) continue;
      const model::Range& range = session_.ranges[i];
      Occurrence one;
      one.start_ns = range.start_ns;
      one.open = range.end_ns == kOpen;
      one.end_ns = range.end_ns;
      one.thread = range.thread;
      one.process = process_of(range.thread);
      one.kind = range.kind;
      if (not_closed_) {
        const auto horizon = horizon_.find(one.process);
        one.blind = horizon == horizon_.end() || one.end_ns > horizon->second;
        if (one.blind) ++out.blind;
      }
      all.push_back(one);
      ++out.occurrences;
      if (one.open)
        ++out.unclosed;
      else
        lengths.push_back(range.end_ns - range.start_ns);
      if (range.registered) ++out.registered;
      if (depth_of_[i] > 0) ++out.nested;
      threads.insert(one.thread);
      processes.insert(one.process);
    }
    out.threads = threads.size();
    out.processes = processes.size();
    for (const std::uint32_t process : processes)
      if (parent_[process] != kNone) ++out.child_processes;
    std::stable_sort(all.begin(), all.end(),
                     [](const Occurrence& a, const Occurrence& b) { return a.start_ns < b.start_ns; });
    for (const Occurrence& one : all)
      if (!one.open) out.span_ns = std::max(out.span_ns, one.end_ns - all.front().start_ns);
    for (const Occurrence& one : all)
      if (!one.open) {
        out.first_ns = one.end_ns - one.start_ns;
        break;
      }
    if (!lengths.empty()) {
      const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
      std::nth_element(lengths.begin(), middle, lengths.end());
      out.median_ns = *middle;
    }
    return all;
  }

  void work_inside(std::vector<Occurrence> all, RangeFacts& out) const {
    std::unordered_map<std::uint32_t, Intervals> by_thread, by_process, spans;
    for (std::size_t i = 0; i < all.size(); ++i) {
      by_process[all[i].process].add(i);
      (all[i].kind == RangeKind::kPushPop ? by_thread[all[i].thread] : spans[all[i].process]).add(i);
    }
    for (auto* group : {&by_thread, &by_process, &spans})
      for (auto& [key, intervals] : *group) intervals.finish(all);
    const auto look = [&](const std::unordered_map<std::uint32_t, Intervals>& group, std::uint32_t key,
                          std::int64_t at) {
      const auto found = group.find(key);
      return found == group.end() ? Intervals::kNowhere : found->second.open_at(at, all);
    };
    std::map<std::uint32_t, std::set<std::uint32_t>> contexts;
    std::set<std::uint32_t> other_threads;
    for (const std::uint32_t index : by_start_) {
      const model::Launch& call = session_.launches[index];
      const Work& work = work_[index];
      const std::uint32_t process = process_of(call.thread);
      std::size_t at = look(by_thread, call.thread, call.start_ns);
      if (at == Intervals::kNowhere) at = look(spans, process, call.start_ns);
      if (at != Intervals::kNowhere) {
        Occurrence& one = all[at];
        out.kernels += work.kernels;
        out.copies += work.copies;
        out.memsets += work.memsets;
        out.graph_launches += work.graphs;
        if (work.kernels > 0 || work.graphs > 0) {
          one.names = mix(one.names, work.names);
          one.shapes = mix(one.shapes, work.shapes);
          one.last_work_ns = std::max(one.last_work_ns, work.last_end_ns);
          if (!one.open && work.last_end_ns > one.end_ns) out.late_kernels += std::max(work.kernels, 1u);
        }
        for (const std::uint32_t context : work.contexts) contexts[process].insert(context);
        if (call.kind == model::LaunchKind::kOther && call.name != 0) ++out.calls[text(call.name)];
        if (call.kind == model::LaunchKind::kGraph && call.name != 0) ++out.calls[text(call.name)];
        const auto first = first_call_.find(process);
        if (first != first_call_.end() && first->second == call.start_ns) out.first_cuda_call_inside = true;
        continue;
      }
      if (work.kernels == 0 && work.graphs == 0) continue;
      const std::uint32_t amount = std::max(work.kernels, work.graphs);
      if (look(by_process, process, call.start_ns) != Intervals::kNowhere) {
        out.other_thread_kernels += amount;
        if (bare_[index]) out.bare_kernels += amount;
        other_threads.insert(call.thread);
        continue;
      }
      if (!bare_[index]) continue;
      for (std::uint32_t above = parent_[process], steps = 0; above != kNone && steps < 64;
           above = parent_[above], ++steps)
        if (look(by_process, above, call.start_ns) != Intervals::kNowhere) {
          out.child_kernels += amount;
          break;
        }
    }
    out.other_threads = other_threads.size();
    for (const auto& [unused, used] : contexts) out.contexts = std::max(out.contexts, used.size());
    for (const Occurrence& one : all)
      if (!one.open && one.last_work_ns > one.end_ns) ++out.late_occurrences;
    compare_occurrences(all, out);
  }

  static void compare_occurrences(const std::vector<Occurrence>& all, RangeFacts& out) {
    std::map<std::uint64_t, std::uint64_t> names;
    std::set<std::uint64_t> shapes;
    std::vector<std::uint64_t> in_order;
    for (const Occurrence& one : all) {
      if (one.open || one.blind) continue;
      ++names[one.names];
      shapes.insert(one.shapes);
      in_order.push_back(one.names);
    }
    for (const auto& [unused, count] : names) out.sequences.push_back(count);
    std::sort(out.sequences.rbegin(), out.sequences.rend());
    out.shapes_differ = names.size() == 1 && shapes.size() > 1;
    out.only_first_differs =
        in_order.size() > 2 && names.size() == 2 && names[in_order.front()] == 1 && in_order[0] != in_order[1];
  }

  const model::Session& session_;
  ProgramFacts facts_;
  std::vector<Node> nodes_;
  std::map<std::pair<std::pair<std::uint32_t, model::StringId>, std::pair<model::StringId, RangeKind>>, std::uint32_t>
      node_at_;
  std::vector<std::uint32_t> node_of_, depth_of_, parent_, by_start_;
  std::vector<std::size_t> seen_at_;
  std::vector<Work> work_;
  bool not_closed_ = false;
  std::unordered_map<std::uint32_t, std::int64_t> horizon_;     // process -> start of its last known launch
  std::vector<bool> bare_;                                      // the launching thread had no push/pop range open
  std::unordered_map<std::uint32_t, std::int64_t> first_call_;  // process -> its first CUDA call
};

}  // namespace

std::string SeenRange::shown() const {
  return (domain.empty() ? "" : domain + "@") + base::join(path, " > ");
}

ProgramFacts gather(const model::Session& session, const model::RangeSelection& ranges) {
  return Gatherer(session).run(ranges);
}

collect::Look look_of(const ProgramFacts& facts, const RangeFacts& range) {
  collect::Look look;
  look.occurrences = range.occurrences - range.unclosed;
  if (facts.cuda && facts.gpu_unavailable.empty() && facts.kernels + facts.graph_launches > 0)
    look.kernels = range.kernels + range.graph_launches + range.other_thread_kernels;
  look.calls = range.calls;
  look.graph_launches = range.graph_launches;
  look.other_thread_kernels = range.other_thread_kernels;
  look.contexts = range.contexts;
  if (range.sequences.size() > 1 && !range.only_first_differs) look.alike = false;
  if (range.sequences.size() == 1 && range.occurrences - range.unclosed > 1) look.alike = true;
  return look;
}

collect::Look look_of(const ProgramFacts& facts) {
  collect::Look all;
  if (facts.meant.empty()) return all;
  all.occurrences = 0;
  for (const RangeFacts& range : facts.meant) {
    const collect::Look one = look_of(facts, range);
    *all.occurrences += one.occurrences.value_or(0);
    if (one.kernels) all.kernels = all.kernels.value_or(0) + *one.kernels;
    for (const auto& [name, count] : one.calls) all.calls[name] += count;
    all.graph_launches += one.graph_launches;
    all.other_thread_kernels += one.other_thread_kernels;
    all.contexts = std::max(all.contexts, one.contexts);
    if (one.alike == false) all.alike = false;
  }
  return all;
}

}  // namespace rangescope::doctor
