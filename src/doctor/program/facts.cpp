#include "doctor/program/facts.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyze/samples/wall_samples.hpp"
#include "analyze/tree/contexts.hpp"
#include "analyze/tree/groups.hpp"
#include "analyze/tree/tree.hpp"
#include "model/measure.hpp"

namespace rangescope::doctor {
namespace {

using analyze::kInherited;
using model::kNone;
using model::kOpen;
using model::RangeKind;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ (value + 0x9e3779b97f4a7c15ull)) * 0x100000001b3ull;
}

/// What one launching call caused.
struct Work {
  std::uint32_t kernels = 0, copies = 0, memsets = 0, graphs = 0;
  std::vector<std::uint32_t> left_out;  ///< names of kernels that are not chosen
  std::int64_t last_end_ns = 0;
  /// Hashes of the sequence of kernels, of names alone and with configurations.
  std::uint64_t names = 0, shapes = 0;
  std::vector<std::uint32_t> contexts;

  /// Chosen kernels and graphs.
  [[nodiscard]] bool has_chosen() const { return kernels > 0 || graphs > 0; }
  [[nodiscard]] bool has_kernels() const { return has_chosen() || !left_out.empty(); }
};

/// The value of a graph in the hash of a sequence of kernels.
constexpr std::uint64_t kGraphInSequence = 7;

/// An occurrence of a range that was meant, and the work inside.
struct Occurrence {
  std::int64_t start_ns = 0, end_ns = 0;
  bool blind = false;
  std::int64_t last_work_ns = 0;
  std::uint64_t names = 0, shapes = 0;  ///< as of Work

  void add(const Work& work) {
    names = mix(names, work.names);
    shapes = mix(shapes, work.shapes);
    last_work_ns = std::max(last_work_ns, work.last_end_ns);
  }
};
using Occurrences = std::unordered_map<std::uint32_t, Occurrence>;  // by place in the tree

/// When some occurrence of one process was open.
class OpenTimes {
 public:
  void add(const Occurrence& occurrence) {
    times_.emplace_back(occurrence.start_ns, occurrence.end_ns);
  }
  void finish() {
    std::sort(times_.begin(), times_.end());
    for (std::size_t i = 1; i < times_.size(); ++i)
      times_[i].second = std::max(times_[i].second, times_[i - 1].second);
  }
  [[nodiscard]] bool open_at(std::int64_t time_ns) const {
    const auto after = std::upper_bound(times_.begin(), times_.end(), std::pair{time_ns, kOpen});
    return after != times_.begin() && std::prev(after)->second >= time_ns;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> times_;  // start; latest end so far
};

analyze::Tree linked_tree(const model::Session& session) {
  analyze::Tree tree = analyze::build_tree(session, analyze::Domains::kSeparate, 0);
  analyze::link_nodes(tree, session);
  return tree;
}

/// Every range of the process that is open around a call, those of other threads marked.
analyze::Contexts whole_contexts(const model::Session& session, const analyze::Tree& tree) {
  analyze::Options options;
  options.push_pop_scope = analyze::PushPopScope::kProcess;
  return analyze::build_contexts(session, tree, options);
}

class Gatherer {
 public:
  Gatherer(const model::Session& session, const model::KernelSelection& kernels)
      : session_(session), tree_(linked_tree(session)), around_(whole_contexts(session, tree_)) {
    for (const model::KernelName& name : session.kernel_names)
      chosen_kernels_.push_back(kernels.chooses(session.strings.view(name.demangled),
                                                session.strings.view(name.short_name),
                                                session.strings.view(name.mangled)));
  }

  ProgramFacts run(const model::RangeSelection& ranges) {
    whole_program();
    gpu_work();
    seen_ranges();
    for (const model::RangeTerm& term : ranges.include)
      facts_.meant.push_back(meant(term, ranges.exclude));
    return std::move(facts_);
  }

 private:
  [[nodiscard]] std::string text(model::StringId id) const {
    return std::string(session_.strings.view(id));
  }
  [[nodiscard]] std::uint32_t process_of(std::uint32_t thread) const {
    if (thread >= session_.threads.size())
      return 0;
    return session_.threads[thread].process;
  }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t occurrence) const {
    return tree_.cells[tree_.cell[occurrence]].node;
  }
  [[nodiscard]] const model::Range& range_of(std::uint32_t occurrence) const {
    return session_.ranges[tree_.range_of[occurrence]];
  }

  /// Where the CPU was sampled the session has processes too that loaded nothing of ours.
  [[nodiscard]] std::size_t loaded() const {
    if (session_.cpu.interval_ns == 0)
      return session_.processes.size();
    std::set<std::uint32_t> found;
    for (std::uint32_t p = 0; p < session_.processes.size(); ++p)
      if (session_.processes[p].range_pair_ns > 0)
        found.insert(p);
    for (const model::Thread& thread : session_.threads)
      found.insert(thread.process);
    return found.size();
  }

  void whole_program() {
    facts_.processes = loaded();
    facts_.occurrences = model::count_ranges(session_);
    facts_.kernels = session_.kernels.size();
    facts_.graph_launches = session_.graph_launches.size();
    facts_.cuda = !session_.clock.gpu.empty() || !session_.devices.empty() ||
                  !session_.launches.empty() || !session_.kernels.empty();
    const bool light = analyze::is_light(session_);
    if (light) {  // its use of CUDA was not recorded
      facts_.gpu_unavailable = "the run was recorded with --light";
      facts_.cuda = true;
    }
    for (const model::Loss& loss : session_.losses)
      note(loss);
    find_domains();
    // CUDA makes a process known too; without CUDA it was NVTX.
    const bool other_calls = !session_.marks.empty() || session_.domains.size() > 1 ||
                             !session_.categories.empty() || !session_.resources.empty();
    const bool known_by_nvtx = facts_.processes > 0 && (light || !facts_.cuda);
    facts_.nvtx = !facts_.domains.empty() || other_calls || known_by_nvtx;
    find_parents();
  }

  void note(const model::Loss& loss) {
    const bool gpu_is_incomplete =
        loss.kind == "gpu_partial" || loss.kind == "dropped_gpu_records" ||
        loss.kind == "cupti_failed" || loss.kind == "gpu_stream_not_closed" ||
        loss.kind == "unfinished_gpu_work";
    if (loss.kind == "gpu_unavailable") {
      facts_.gpu_unavailable = loss.detail;
      facts_.cuda = true;
    }
    if (gpu_is_incomplete) {
      if (!facts_.gpu_lost.empty())
        facts_.gpu_lost += "; ";
      facts_.gpu_lost += loss.detail;
    }
    if (loss.kind == "no_capture_file")
      facts_.unrecorded = loss.detail;
    if (model::explains_missing_ranges(loss) && facts_.not_recorded.empty()) {
      facts_.not_recorded_kind = loss.kind.id();
      facts_.not_recorded = loss.detail;
    }
    if (loss.kind == "gpu_stream_not_closed")
      not_closed_ = true;
    if (loss.kind == "pop_without_push")
      facts_.unbalanced_pops = loss.count;
  }

  /// Of the program's own ranges: modules are none that nsys or ncu would know.
  void find_domains() {
    std::set<std::string> domains;
    for (const model::Range& range : session_.ranges)
      if (!range.module)
        domains.insert(text(session_.domains[range.domain].name));
    facts_.domains.assign(domains.begin(), domains.end());
  }

  /// A process is below another one when its chain of parents leads there.
  void find_parents() {
    std::unordered_map<std::uint32_t, std::uint32_t> by_pid;
    for (std::uint32_t i = 0; i < session_.processes.size(); ++i)
      by_pid.try_emplace(session_.processes[i].pid, i);
    parent_.assign(session_.processes.size(), kNone);
    for (std::uint32_t i = 0; i < session_.processes.size(); ++i) {
      const auto parent = by_pid.find(session_.processes[i].parent_pid);
      if (parent != by_pid.end() && parent->second != i)
        parent_[i] = parent->second;
    }
  }

  void gpu_work() {
    work_.resize(session_.launches.size());
    for (const model::Kernel& kernel : session_.kernels)
      add(kernel);
    for (const model::Copy& copy : session_.copies)
      if (Work* work = extended_work(copy.launch, copy.end_ns, copy.stream))
        ++work->copies;
    for (const model::Memset& memset : session_.memsets)
      if (Work* work = extended_work(memset.launch, memset.end_ns, memset.stream))
        ++work->memsets;
    for (const model::GraphLaunch& graph : session_.graph_launches)
      (void)extended_work(graph.launch, graph.end_ns, graph.stream);
    launch_calls();
    if (not_closed_)
      find_horizons();
  }

  void launch_calls() {
    for (std::uint32_t i = 0; i < session_.launches.size(); ++i) {
      const model::Launch& call = session_.launches[i];
      if (call.kind == model::LaunchKind::kGraph) {
        work_[i].graphs = 1;
        work_[i].names = mix(work_[i].names, kGraphInSequence);
      }
      by_start_.push_back(i);
      const auto [first, is_new] = first_call_.try_emplace(process_of(call.thread), call.start_ns);
      if (!is_new)
        first->second = std::min(first->second, call.start_ns);
    }
    std::stable_sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return session_.launches[a].start_ns < session_.launches[b].start_ns;
    });
  }

  /// The work of a launch, after adding the end and the context of one more piece; null for a
  /// launch that was not recorded.
  Work* extended_work(std::uint32_t launch, std::int64_t end_ns, std::uint32_t stream) {
    if (launch >= work_.size())
      return nullptr;
    Work& work = work_[launch];
    work.last_end_ns = std::max(work.last_end_ns, end_ns);
    if (stream < session_.streams.size()) {
      const std::uint32_t context = session_.streams[stream].context;
      if (std::find(work.contexts.begin(), work.contexts.end(), context) == work.contexts.end())
        work.contexts.push_back(context);
    }
    return &work;
  }

  void add(const model::Kernel& kernel) {
    Work* work = extended_work(kernel.launch, kernel.end_ns, kernel.stream);
    if (work == nullptr) {
      ++facts_.orphan_kernels;
      return;
    }
    if (kernel.name >= chosen_kernels_.size() || chosen_kernels_[kernel.name])
      ++work->kernels;
    else
      work->left_out.push_back(kernel.name);
    work->names = mix(work->names, kernel.name + 1);
    work->shapes = mix(mix(work->shapes, kernel.name + 1), kernel.shape + 1);
  }

  /// A killed process takes its last GPU records with it: what ended after the last work that is
  /// known is not judged.
  void find_horizons() {
    for (std::uint32_t i = 0; i < session_.launches.size(); ++i) {
      if (!work_[i].has_kernels())
        continue;
      const model::Launch& call = session_.launches[i];
      std::int64_t& horizon_ns = horizon_.try_emplace(process_of(call.thread), 0).first->second;
      horizon_ns = std::max(horizon_ns, call.start_ns);
    }
  }

  /// Every path, with the work that was launched while it was open: push/pop ranges by the
  /// launching thread, start/end ranges by their process.
  void seen_ranges() {
    std::vector<std::uint64_t> kernels(tree_.nodes.size()), graphs(kernels.size());
    std::set<std::uint32_t> counted;
    for (std::uint32_t launch = 0; launch < work_.size(); ++launch) {
      counted.clear();
      for (const std::uint32_t entry : around_.of(around_.of_launch[launch])) {
        if (entry & kInherited)
          continue;
        for (std::uint32_t node = node_of(entry); node != kNone; node = tree_.nodes[node].parent) {
          if (!counted.insert(node).second)
            break;
          kernels[node] += work_[launch].kernels;
          graphs[node] += work_[launch].graphs;
        }
      }
    }
    std::vector<std::pair<SeenRange, std::uint32_t>> ranges;  // and its node
    for (const std::uint32_t node : tree_.depth_first) {
      if (tree_.nodes[node].module)
        continue;
      SeenRange range = range_of_node(node);
      range.kernels = kernels[node];
      range.graph_launches = graphs[node];
      ranges.emplace_back(std::move(range), node);
    }
    std::ranges::stable_sort(
        ranges, std::greater(), [](const auto& entry) { return entry.first.occurrences; });
    for (auto& [range, node] : ranges) {
      facts_.ranges.push_back(std::move(range));
      order_.push_back(node);
    }
  }

  [[nodiscard]] SeenRange range_of_node(std::uint32_t node) const {
    SeenRange range;
    range.domain = text(session_.domains[tree_.nodes[node].domain].name);
    for (const std::string_view name : analyze::path_of(tree_, session_, node))
      range.path.emplace_back(name);
    range.kind = tree_.nodes[node].kind;
    for (std::size_t i = tree_.node_begin[node]; i < tree_.node_begin[node + 1]; ++i) {
      const analyze::Cell& cell = tree_.cells[tree_.node_cells[i]];
      range.occurrences += cell.closed + cell.unclosed;
      range.unclosed += cell.unclosed;
      range.total_ns += static_cast<std::int64_t>(cell.inclusive_ns);
    }
    return range;
  }

  RangeFacts meant(const model::RangeTerm& term, const std::vector<model::RangeTerm>& excluded) {
    RangeFacts out;
    out.term = {term.written, {term.forms.front()}};
    out.kind_said = term.kind_said();
    const std::vector<char> chosen = chosen_nodes(term, excluded, out);
    Occurrences occurrences;
    occurrences_of(chosen, occurrences, out);
    work_inside(chosen, occurrences, out);
    compare(occurrences, out);
    return out;
  }

  /// 1 for each node that the term names and no excluded one does. Adds their ranges to `out.seen`;
  /// the first form of the term that names one is the one in `out.term`.
  std::vector<char> chosen_nodes(const model::RangeTerm& term,
                                 const std::vector<model::RangeTerm>& excluded,
                                 RangeFacts& out) {
    std::vector<char> chosen(tree_.nodes.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto node = order_[i];
      const SeenRange& range = facts_.ranges[i];
      const std::vector<std::string_view> path(range.path.begin(), range.path.end());
      const auto names_range = [&](const model::RangeTerm& other) {
        return other.names_region(range.domain, path, range.kind);
      };
      if (std::ranges::any_of(excluded, names_range))
        continue;
      for (const model::RangeExpression& form : term.forms) {
        if (!form.names_itself(range.domain, path, range.kind))
          continue;
        if (out.seen.empty())
          out.term.forms = {form};
        if (!chosen[node])
          out.seen.push_back(i);
        chosen[node] = 1;
      }
    }
    return chosen;
  }

  void occurrences_of(const std::vector<char>& chosen,
                      Occurrences& occurrences,
                      RangeFacts& out) const {
    std::set<std::uint32_t> threads, processes;
    std::vector<std::int64_t> lengths;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t first_closed_ns = first_ns, last_ns = 0;
    for (std::uint32_t place = 0; place < tree_.range_of.size(); ++place) {
      if (!chosen[node_of(place)])
        continue;
      const model::Range& range = range_of(place);
      const std::uint32_t process = process_of(range.thread);
      Occurrence& occurrence = occurrences[place];
      occurrence.start_ns = range.start_ns;
      occurrence.end_ns = range.end_ns;
      if (not_closed_) {
        const auto horizon = horizon_.find(process);
        occurrence.blind = horizon == horizon_.end() || occurrence.end_ns > horizon->second;
        if (occurrence.blind)
          ++out.blind;
      }
      ++out.occurrences;
      first_ns = std::min(first_ns, range.start_ns);
      if (range.end_ns == kOpen) {
        ++out.unclosed;
      } else {
        lengths.push_back(range.end_ns - range.start_ns);
        last_ns = std::max(last_ns, range.end_ns);
        if (range.start_ns < first_closed_ns) {
          first_closed_ns = range.start_ns;
          out.first_ns = lengths.back();
        }
      }
      if (range.registered)
        ++out.registered;
      if (tree_.parent[place] != kNone)
        ++out.nested;
      threads.insert(range.thread);
      processes.insert(process);
    }
    out.threads = threads.size();
    out.processes = processes.size();
    for (const std::uint32_t process : processes)
      if (parent_[process] != kNone)
        ++out.child_processes;
    if (lengths.empty())
      return;
    out.span_ns = last_ns - first_ns;
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    out.median_ns = *middle;
  }

  /// The occurrence of a chosen range that the call lies in: the innermost one of its own thread or
  /// of a start/end range; with `inherited`, one of another thread of its process. kNone where
  /// there is none.
  [[nodiscard]] std::uint32_t around(std::uint32_t launch,
                                     const std::vector<char>& chosen,
                                     bool inherited) const {
    for (std::uint32_t entry : around_.of(around_.of_launch[launch])) {
      if (((entry & kInherited) != 0) != inherited)
        continue;
      for (std::uint32_t place = entry & ~kInherited; place != kNone; place = tree_.parent[place])
        if (chosen[node_of(place)])
          return place;
    }
    return kNone;
  }

  /// The launching thread had no push/pop range open.
  [[nodiscard]] bool bare(std::uint32_t launch) const {
    const auto entries = around_.of(around_.of_launch[launch]);
    return std::none_of(entries.begin(), entries.end(), [&](std::uint32_t entry) {
      return (entry & kInherited) == 0 && range_of(entry).kind == RangeKind::kPushPop &&
             !range_of(entry).module;
    });
  }

  void work_inside(const std::vector<char>& chosen,
                   Occurrences& occurrences,
                   RangeFacts& out) const {
    std::unordered_map<std::uint32_t, OpenTimes> open;  // by process
    for (const auto& [place, occurrence] : occurrences)
      open[process_of(range_of(place).thread)].add(occurrence);
    for (auto& [process, times] : open)
      times.finish();
    std::map<std::uint32_t, std::set<std::uint32_t>> contexts;  // by process
    std::set<std::uint32_t> other_threads;
    for (const std::uint32_t launch : by_start_) {
      const std::uint32_t thread = session_.launches[launch].thread;
      const Work& work = work_[launch];
      if (const std::uint32_t place = around(launch, chosen, false); place != kNone) {
        add_inside(launch, occurrences[place], out);
        contexts[process_of(thread)].insert(work.contexts.begin(), work.contexts.end());
      } else if (work.has_chosen()) {
        const std::uint32_t amount = std::max(work.kernels, work.graphs);
        const bool is_bare = bare(launch);
        if (around(launch, chosen, true) != kNone) {
          out.other_thread_kernels += amount;
          if (is_bare)
            out.bare_kernels += amount;
          other_threads.insert(thread);
        } else if (is_bare && is_below_open(launch, open)) {
          out.child_kernels += amount;
        }
      }
    }
    out.other_threads = other_threads.size();
    for (const auto& [process, used] : contexts)
      out.contexts = std::max(out.contexts, used.size());
  }

  /// A call inside an occurrence, and what it caused.
  void add_inside(std::uint32_t launch, Occurrence& occurrence, RangeFacts& out) const {
    const model::Launch& call = session_.launches[launch];
    const Work& work = work_[launch];
    out.kernels += work.kernels;
    out.copies += work.copies;
    out.memsets += work.memsets;
    out.graph_launches += work.graphs;
    for (const std::uint32_t name : work.left_out)
      ++out.left_out[text(analyze::shown_name(session_.kernel_names[name]))];
    if (work.has_kernels()) {
      occurrence.add(work);
      if (work.last_end_ns > occurrence.end_ns)
        out.late_kernels += std::max(work.kernels, 1u);
    }
    const bool is_other_call =
        call.kind == model::LaunchKind::kOther || call.kind == model::LaunchKind::kGraph;
    if (is_other_call && call.name != 0)
      ++out.calls[text(call.name)];
    const auto first = first_call_.find(process_of(call.thread));
    if (first != first_call_.end() && first->second == call.start_ns)
      out.first_cuda_call_inside = true;
  }

  /// An occurrence was open meanwhile in a process above the one that launches.
  [[nodiscard]] bool is_below_open(std::uint32_t launch,
                                   const std::unordered_map<std::uint32_t, OpenTimes>& open) const {
    constexpr int kMostAncestors = 64;  // process ids are used again: a chain may have a circle
    const model::Launch& call = session_.launches[launch];
    std::uint32_t ancestor = parent_[process_of(call.thread)];
    for (int i = 0; i < kMostAncestors && ancestor != kNone; ++i, ancestor = parent_[ancestor]) {
      const auto times = open.find(ancestor);
      if (times != open.end() && times->second.open_at(call.start_ns))
        return true;
    }
    return false;
  }

  static void compare(const Occurrences& occurrences, RangeFacts& out) {
    std::vector<const Occurrence*> in_order;
    for (const auto& [place, occurrence] : occurrences) {
      if (occurrence.end_ns == kOpen)
        continue;
      if (occurrence.last_work_ns > occurrence.end_ns)
        ++out.late_occurrences;
      if (!occurrence.blind)
        in_order.push_back(&occurrence);
    }
    std::ranges::sort(in_order, {}, &Occurrence::start_ns);
    std::map<std::uint64_t, std::uint64_t> occurrences_by_names;
    std::set<std::uint64_t> shapes;
    for (const Occurrence* occurrence : in_order) {
      ++occurrences_by_names[occurrence->names];
      shapes.insert(occurrence->shapes);
    }
    for (const auto& [names, count] : occurrences_by_names)
      out.sequences.push_back(count);
    std::sort(out.sequences.rbegin(), out.sequences.rend());
    out.shapes_differ = occurrences_by_names.size() == 1 && shapes.size() > 1;
    out.only_first_differs = in_order.size() > 2 && occurrences_by_names.size() == 2 &&
                             occurrences_by_names[in_order[0]->names] == 1 &&
                             in_order[0]->names != in_order[1]->names;
  }

  const model::Session& session_;
  const analyze::Tree tree_;
  const analyze::Contexts around_;
  ProgramFacts facts_;
  std::vector<char> chosen_kernels_;  // by name
  std::vector<std::uint32_t> order_;  // node of each entry of facts_.ranges
  std::vector<std::uint32_t> parent_, by_start_;
  std::vector<Work> work_;
  bool not_closed_ = false;
  std::unordered_map<std::uint32_t, std::int64_t>
      horizon_;  // process -> start of its last known launch
  std::unordered_map<std::uint32_t, std::int64_t> first_call_;  // process -> its first CUDA call
};

}  // namespace

std::string SeenRange::shown() const {
  return model::path_text(domain, path);
}

ProgramFacts gather(const model::Session& session,
                    const model::RangeSelection& ranges,
                    const model::KernelSelection& kernels) {
  return Gatherer(session, kernels).run(ranges);
}

collect::Evidence evidence_of(const ProgramFacts& facts, const RangeFacts& range) {
  collect::Evidence evidence;
  evidence.occurrences = range.occurrences - range.unclosed;
  if (facts.cuda && facts.gpu_unavailable.empty() && facts.kernels + facts.graph_launches > 0)
    evidence.kernels = range.kernels + range.graph_launches + range.other_thread_kernels;
  evidence.calls = range.calls;
  evidence.graph_launches = range.graph_launches;
  evidence.other_thread_kernels = range.other_thread_kernels;
  evidence.contexts = range.contexts;
  if (range.sequences.size() > 1 && !range.only_first_differs)
    evidence.alike = false;
  if (range.sequences.size() == 1 && range.occurrences - range.unclosed > 1)
    evidence.alike = true;
  return evidence;
}

collect::Evidence evidence_of(const ProgramFacts& facts) {
  collect::Evidence sum;
  if (facts.meant.empty())
    return sum;
  sum.occurrences = 0;
  for (const RangeFacts& range : facts.meant) {
    const collect::Evidence of_range = evidence_of(facts, range);
    *sum.occurrences += of_range.occurrences.value_or(0);
    if (of_range.kernels)
      sum.kernels = sum.kernels.value_or(0) + *of_range.kernels;
    for (const auto& [name, count] : of_range.calls)
      sum.calls[name] += count;
    sum.graph_launches += of_range.graph_launches;
    sum.other_thread_kernels += of_range.other_thread_kernels;
    sum.contexts = std::max(sum.contexts, of_range.contexts);
    if (of_range.alike == false)
      sum.alike = false;
  }
  return sum;
}

}  // namespace rangescope::doctor
