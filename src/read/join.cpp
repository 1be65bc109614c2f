#include "read/join.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/find.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "read/append_allocators.hpp"
#include "read/index.hpp"
#include "read/open_ranges.hpp"

namespace rangescope::read {
namespace {

using model::kNone;
using model::kOpen;
using model::Session;

/// Moves `from` behind what `to` holds; ids of strings, domains and metrics are those of equal
/// name.
class Appender {
 public:
  Appender(Session& to, Session& from) : to_(to), from_(from) {}

  void run() {
    align_clocks();
    names();
    machines();
    work();
    results();
    move(from_.sources, to_.sources);
    losses();
  }

 private:
  template <class T>
  static void move(std::vector<T>& from, std::vector<T>& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
  /// A loss that several inputs report in the same words is listed once.
  void losses() {
    for (model::Loss& loss : from_.losses) {
      const auto same = std::ranges::find_if(to_.losses, [&](const model::Loss& known) {
        return known.kind == loss.kind && known.severity == loss.severity &&
               known.detail == loss.detail;
      });
      if (same == to_.losses.end())
        to_.losses.push_back(std::move(loss));
      else
        same->count += loss.count;
    }
  }
  template <class T>
  static std::uint32_t count(const std::vector<T>& v) {
    return static_cast<std::uint32_t>(v.size());
  }
  static void add(std::uint32_t& index, std::uint32_t offset) {
    if (index != kNone)
      index += offset;
  }
  void move_time(std::int64_t& at) const {
    if (at != kOpen)
      at += shift_;
  }
  model::StringId text(model::StringId id) {
    if (id == 0)
      return 0;
    if (texts_.size() <= id)
      texts_.resize(id + 1, 0);
    if (texts_[id] == 0)
      texts_[id] = to_.strings.intern(from_.strings.view(id));
    return texts_[id];
  }

  static std::uint32_t at(const std::vector<std::uint32_t>& places, std::uint32_t index) {
    return base::element_or(places, index, kNone);
  }
  void add_thread(std::uint32_t& thread) const { thread = at(threads_, thread); }

  /// Indexes, names and times of `item` as `to_` has them: members of one name mean the same
  /// everywhere.
  template <class T>
  void place(T& item) {
    if constexpr (requires { item.process; })
      item.process = at(processes_, item.process);
    if constexpr (requires { item.thread; })
      item.thread = at(threads_, item.thread);
    if constexpr (requires { item.end_thread; })
      item.end_thread = at(threads_, item.end_thread);
    if constexpr (requires { item.free_thread; })
      add_thread(item.free_thread);
    if constexpr (requires { item.domain; })
      item.domain = domains_[item.domain];
    if constexpr (requires { item.range; })
      item.range += ranges_;
    if constexpr (requires { item.attributes; })
      add(item.attributes, attributes_);
    if constexpr (requires { item.device; })
      item.device = at(devices_, item.device);
    if constexpr (requires { item.stream; })
      item.stream = at(streams_, item.stream);
    if constexpr (requires { item.launch; })
      add(item.launch, launches_);
    if constexpr (requires { item.graph_node; })
      add(item.graph_node, nodes_);
    if constexpr (requires { item.captured_path; })
      add(item.captured_path, paths_);
    if constexpr (requires { item.kernel_name; })
      add(item.kernel_name, names_);
    if constexpr (requires { item.at_ns; })
      move_time(item.at_ns);
    if constexpr (requires { item.start_ns; })
      move_time(item.start_ns), move_time(item.end_ns);
    if constexpr (std::is_same_v<T, model::Kernel>)
      item.name += names_;
    else if constexpr (requires { item.name; })
      item.name = text(item.name);
    if constexpr (requires { item.shape; })
      item.shape = at(shapes_, item.shape);
    if constexpr (requires { item.text; })
      item.text = text(item.text);
    if constexpr (requires { item.uuid; })
      for (model::StringId* id : {&item.uuid, &item.pci_bus, &item.chip})
        *id = text(*id);
    if constexpr (requires { item.mangled; })
      for (model::StringId* id : {&item.demangled, &item.short_name, &item.mangled})
        *id = text(*id);
  }
  template <class T>
  void append(std::vector<T>& from, std::vector<T>& to) {
    for (T& item : from)
      place(item);
    move(from, to);
  }
  template <auto... Member>
  void append() {
    (append(from_.*Member, to_.*Member), ...);
  }

  /// What a process of both has is listed once.
  template <class T, class Same>
  void lay(std::vector<T>& from,
           std::vector<T>& to,
           std::vector<std::uint32_t>& places,
           const Same& same) {
    for (T& item : from) {
      place(item);
      const auto same_item = std::ranges::find_if(to, [&](const T& other) {
        return other.process == item.process && item.process < processes_of_to_ &&
               same(item, other);
      });
      places.push_back(static_cast<std::uint32_t>(same_item - to.begin()));
      if (same_item == to.end())
        to.push_back(item);
    }
  }

  /// The place of a process of `from_` in `to_`, else behind all. Files of one recording (nsys
  /// starts and stops) have one process of that number and name, at different times.
  [[nodiscard]] std::uint32_t place_of(const model::Process& process) const {
    for (std::uint32_t i = 0; i < processes_of_to_; ++i) {
      const model::Process& candidate = to_.processes[i];
      const bool alike = candidate.pid == process.pid && candidate.name == process.name &&
                         candidate.host == process.host && candidate.run == process.run &&
                         candidate.rank == process.rank;
      const bool timed = candidate.end_ns > candidate.start_ns && process.end_ns > process.start_ns;
      const bool apart =
          timed && (process.start_ns >= candidate.end_ns || process.end_ns <= candidate.start_ns);
      if (alike && (results_ || (apart && aligned_ && process.pid != 0)))
        return i;
    }
    if (results_)
      return 0;
    return count(to_.processes);
  }

  /// The time between recordings of different runs: far apart for how long they are, without a
  /// process in common; or 0.
  [[nodiscard]] std::int64_t apart_ns() const {
    constexpr std::int64_t kLengths = 10, kLeast_ns = 10'000'000'000;
    const std::int64_t begin = from_.begin_ns + shift_, end = from_.end_ns + shift_;
    const std::int64_t gap = std::max(begin - to_.end_ns, to_.begin_ns - end);
    if (gap < kLeast_ns || gap / kLengths < to_.end_ns - to_.begin_ns + end - begin)
      return 0;
    if (has_common_process())
      return 0;
    return gap;
  }

  [[nodiscard]] bool has_common_process() const {
    const auto is_common = [this](const model::Process& process) {
      return std::ranges::any_of(to_.processes, [&](const model::Process& known) {
        const std::string_view name = from_.strings.view(process.name);
        return process.pid == known.pid && name == to_.strings.view(known.name);
      });
    };
    return std::ranges::any_of(from_.processes, is_common);
  }

  /// Real end of the last capture of `to_`, on its clock: that of captures of one run lacks the
  /// time between them.
  [[nodiscard]] std::int64_t real_end_ns() const {
    if (to_.windows.empty())
      return to_.end_ns;
    const model::Window &first = to_.windows.front(), &last = to_.windows.back();
    return to_.begin_ns + last.after_ns - first.after_ns + last.length_ns;
  }

  /// Captures of rangescope have their windows already.
  static bool has_own_captures(const Session& session) {
    return std::ranges::find(session.sources, model::Maker::kRangescope, &model::Source::maker) !=
           session.sources.end();
  }

  /// Whether rangescope recorded both, in run folders of their own: processes of one run have one.
  /// The runs of one job are one recording.
  [[nodiscard]] bool are_runs_of_their_own() const {
    if (!has_own_captures(to_) || !has_own_captures(from_) || has_common_process())
      return false;
    const auto is_of_a_job = [](const model::Process& process) { return process.run != 0; };
    if (std::ranges::any_of(from_.processes, is_of_a_job))
      return false;
    const auto folder_of = [](const model::Source& source) {
      return std::filesystem::path(source.path).parent_path();
    };
    return std::ranges::none_of(from_.sources, [&](const model::Source& source) {
      return std::ranges::find(to_.sources, folder_of(source), folder_of) != to_.sources.end();
    });
  }

  /// Time between recordings in which nothing was recorded: nsys starts and stops, or one program
  /// ran after the other. Between the processes of one run it is time of the run.
  [[nodiscard]] std::int64_t unrecorded_ns() const {
    const bool has_captures = has_own_captures(to_) || has_own_captures(from_);
    if (has_captures && !are_runs_of_their_own())
      return 0;
    return std::max<std::int64_t>(0, from_.begin_ns + shift_ - real_end_ns());
  }

  /// Puts a later recording right behind the ones before it: the time between is in no share.
  void leave_out_unrecorded(std::int64_t gap) {
    if (to_.windows.empty())
      to_.windows.push_back({1, 0, to_.end_ns - to_.begin_ns});
    const std::int64_t begin_ns = from_.begin_ns + shift_;
    const std::int64_t after_ns = to_.windows.front().after_ns + begin_ns - to_.begin_ns;
    to_.windows.push_back({count(to_.windows) + 1, after_ns, from_.end_ns - from_.begin_ns});
    shift_ -= begin_ns - to_.end_ns;
    const std::string time = base::format_ns(static_cast<double>(gap));
    to_.losses.push_back({"not_recorded", 0, time + " between recordings: in no share"});
  }

  void align_clocks() {
    processes_of_to_ = count(to_.processes);
    results_ = has_timeline(to_) && !has_timeline(from_) && !to_.processes.empty();
    aligned_ = to_.clock.anchor_unix_ns != 0 && from_.clock.anchor_unix_ns != 0;
    if (!has_timeline(from_))
      return;
    if (!has_timeline(to_)) {
      to_.clock = from_.clock;
      to_.begin_ns = from_.begin_ns;
      to_.end_ns = from_.end_ns;
      return;
    }
    const auto not_aligned = [this](const std::string& why) {
      std::string input = "an input";
      if (!from_.sources.empty())
        input = from_.sources[0].path;
      to_.losses.push_back(
          {"clocks_not_aligned",
           0,
           input + ": " + why + ": durations can be compared between inputs, timestamps cannot"});
    };
    if (aligned_) {
      shift_ = (from_.clock.anchor_unix_ns - from_.clock.anchor_ns) -
               (to_.clock.anchor_unix_ns - to_.clock.anchor_ns);
      if (const std::int64_t gap = apart_ns(); gap > 0) {
        shift_ = to_.begin_ns - from_.begin_ns;
        to_.far_apart = true;
        not_aligned("other processes, " + base::format_ns(static_cast<double>(gap)) +
                    " apart from the inputs before it");
      } else if (const std::int64_t unrecorded = unrecorded_ns(); unrecorded > 0) {
        leave_out_unrecorded(unrecorded);
      }
    } else {
      not_aligned("its clock's UTC time is unknown");
    }
    to_.begin_ns = std::min(to_.begin_ns, from_.begin_ns + shift_);
    to_.end_ns = std::max(to_.end_ns, from_.end_ns + shift_);
  }

  void names() {
    for (const model::Domain& domain : from_.domains)
      domains_.push_back(index_.domains.of({text(domain.name)}));
    std::map<std::string, std::uint32_t> metrics;
    for (std::uint32_t i = 0; i < to_.metrics.size(); ++i)
      metrics.emplace(to_.metrics[i].name + '\n' + to_.metrics[i].source, i);
    for (model::MetricDef& metric : from_.metrics) {
      const auto [at, added] =
          metrics.emplace(metric.name + '\n' + metric.source, count(to_.metrics));
      if (added)
        to_.metrics.push_back(std::move(metric));
      metrics_.push_back(at->second);
    }
  }

  void machines() {
    for (model::Process process : from_.processes) {
      for (model::StringId* id : {&process.name, &process.host, &process.run})
        *id = text(*id);
      process.start_ns += shift_;
      process.end_ns += shift_;
      processes_.push_back(place_of(process));
      if (processes_.back() < to_.processes.size()) {
        model::Process& known = to_.processes[processes_.back()];
        if (!results_)
          known.start_ns = std::min(known.start_ns, process.start_ns);
        if (!results_)
          known.end_ns = std::max(known.end_ns, process.end_ns);
        continue;
      }
      to_.processes.push_back(process);
    }
    for (const model::Thread& thread : from_.threads)
      threads_.push_back(
          index_.threads.of({at(processes_, thread.process), thread.tid, text(thread.name)}));
    lay(from_.devices,
        to_.devices,
        devices_,
        [this](const model::Device& a, const model::Device& b) {
          const bool unsaid = results_ && (a.uuid == 0 || b.uuid == 0);  // ncu tells no UUID
          return a.ordinal == b.ordinal && (a.uuid == b.uuid || (unsaid && a.name == b.name));
        });
    lay(from_.streams, to_.streams, streams_, [](const model::Stream& a, const model::Stream& b) {
      return a.device == b.device && a.context == b.context && a.id == b.id;
    });
    append<&Session::categories, &Session::resources>();
  }

  void work() {
    ranges_ = count(to_.ranges);
    attributes_ = count(to_.attributes);
    launches_ = count(to_.launches);
    nodes_ = count(to_.graph_nodes);
    paths_ = count(to_.captured_paths);
    names_ = count(to_.kernel_names);
    append<&Session::attributes,
           &Session::projections,
           &Session::payload_fields,
           &Session::unlisted,
           &Session::unlisted_inside,
           &Session::open_spans,
           &Session::ranges,
           &Session::marks,
           &Session::launches,
           &Session::kernel_names>();
    // Equal launch configurations are one, so that a report can count those that differ.
    for (const model::KernelShape& shape : from_.kernel_shapes)
      shapes_.push_back(index_.shapes.of(shape));
    for (auto& path : from_.captured_paths)
      for (model::OpenRange& range : path)
        place(range);
    move(from_.captured_paths, to_.captured_paths);
    append<&Session::graph_nodes,
           &Session::kernels,
           &Session::copies,
           &Session::memsets,
           &Session::synchronizations,
           &Session::graph_launches,
           &Session::event_calls,
           &Session::memory_events>();
    to_.unrecorded.kernels |= from_.unrecorded.kernels;
    to_.unrecorded.copies |= from_.unrecorded.copies;
    to_.unrecorded.calls |= from_.unrecorded.calls;
    append(from_.gpu_pauses, to_.gpu_pauses);
    for (model::CounterWait& wait : from_.counter_waits)
      for (model::StringId& name : wait.path)
        name = text(name);
    append(from_.counter_waits, to_.counter_waits);
  }

  void results() {
    for (model::Measurement& result : from_.measurements) {
      for (model::OpenRange& range : result.ranges)
        place(range);
      for (model::MetricValue& value : result.values)
        value.metric = metrics_[value.metric];
    }
    append(from_.measurements, to_.measurements);
    for (model::SampleStream& samples : from_.samples) {
      samples.device = at(devices_, samples.device);
      if (samples.other_clock) {
        move_time(samples.offset_ns);
      } else {
        for (std::int64_t& start_ns : samples.start_ns)
          move_time(start_ns);
        for (std::int64_t& end_ns : samples.end_ns)
          move_time(end_ns);
      }
      to_.samples.push_back(std::move(samples));
    }
    cpu();
    allocators();
    model::Summary& summary = from_.summary;
    for (model::RangeSummary& row : summary.ranges)
      row.domain = text(row.domain), row.name = text(row.name);
    for (model::KernelSummary& row : summary.kernels)
      for (model::StringId* id : {&row.domain, &row.range, &row.name})
        *id = text(*id);
    for (model::CallSummary& row : summary.calls)
      row.name = text(row.name);
    move(summary.ranges, to_.summary.ranges);
    move(summary.kernels, to_.summary.kernels);
    move(summary.copies, to_.summary.copies);
    move(summary.calls, to_.summary.calls);
    for (auto& [name, path] : summary.paths) {
      for (model::StringId& each : path)
        each = text(each);
      to_.summary.paths.emplace(text(name), std::move(path));
    }
  }

  /// Threads of the CPU know which recording they are of, also those without ranges.
  void mark_recordings() {
    // Those of the first recording have never been joined.
    for (model::CpuThread& thread : to_.cpu.threads)
      if (thread.recorded_with == kNone && !to_.processes.empty())
        thread.recorded_with = 0;
    if (processes_.empty())
      return;
    for (model::CpuThread& thread : from_.cpu.threads)
      thread.recorded_with = processes_.front();
  }

  void cpu() {
    model::CpuProfile &from = from_.cpu, &to = to_.cpu;
    if (from.interval_ns == 0)
      return;
    if (to.interval_ns == 0) {
      to.interval_ns = from.interval_ns;
      to.unwinding = from.unwinding;
      to.switches = from.switches;
      to.kernel = from.kernel;
    } else if (to.interval_ns != from.interval_ns) {
      to_.losses.push_back(
          {"cpu_not_joined", from.samples.size(), "CPU samples of inputs with other intervals"});
      return;
    }
    to.switches &= from.switches;
    to.kernel &= from.kernel;
    // Its threads, frames, stacks and counters are numbered for themselves.
    const std::uint32_t threads = count(to.threads), frames = count(to.frames),
                        stacks = count(to.stacks), counters = count(to.counters);
    mark_recordings();
    for (model::CpuThread& thread : from.threads) {
      thread.thread = at(threads_, thread.thread);
      add(thread.creator, threads);
      thread.name = text(thread.name);
    }
    for (model::CpuFrame& frame : from.frames)
      for (model::StringId* id : {&frame.name, &frame.file, &frame.module})
        *id = text(*id);
    for (model::CpuStack& stack : from.stacks)
      add(stack.parent, stacks), stack.frame += frames;
    for (model::CpuLine& line : from.lines)
      line.frame += frames;
    for (model::CpuCounter& counter : from.counters)
      counter.name = text(counter.name);
    const auto shift = [&](auto& item) {
      item.thread += threads;
      if constexpr (requires { item.at_ns; })
        move_time(item.at_ns);
      if constexpr (requires { item.start_ns; })
        move_time(item.start_ns), move_time(item.end_ns);
      if constexpr (requires { item.stack; })
        add(item.stack, stacks);
      if constexpr (requires { item.holder; })
        add(item.holder, threads);
      if constexpr (requires { item.counter; })
        item.counter += counters;
    };
    std::ranges::for_each(from.samples, shift);
    std::ranges::for_each(from.waits, shift);
    std::ranges::for_each(from.counts, shift);
    to.unwatched = std::max(to.unwatched, from.unwatched);
    const auto move_all = [&](auto... members) { (move(from.*members, to.*members), ...); };
    using Cpu = model::CpuProfile;
    move_all(&Cpu::threads,
             &Cpu::frames,
             &Cpu::stacks,
             &Cpu::samples,
             &Cpu::waits,
             &Cpu::lines,
             &Cpu::counters,
             &Cpu::counts);
  }

  void allocators() {
    const auto place_at = [this](auto& item) {
      place(item);
      if constexpr (requires { item.first_ns; })
        move_time(item.first_ns), move_time(item.last_ns);
    };
    append_allocators(
        std::move(from_.allocators), to_.allocators, place_at, [this](model::StringId id) {
          return text(id);
        });
  }

  Session& to_;
  Session& from_;
  Index index_{to_};
  std::int64_t shift_ = 0;
  bool aligned_ = false;
  bool results_ = false;  ///< of another run of the program that the timeline shows: of its
                          ///< processes, and no others
  std::uint32_t processes_of_to_ = 0;
  std::vector<model::StringId> texts_;
  /// The place of each in `to_`.
  std::vector<std::uint32_t> domains_, metrics_, processes_, threads_, devices_, streams_;
  std::uint32_t ranges_ = 0, attributes_ = 0, launches_ = 0, nodes_ = 0, paths_ = 0, names_ = 0;
  std::vector<std::uint32_t> shapes_;
};

/// A kernel of the timeline that results of one path may meet.
struct Place {
  std::uint32_t kernel = 0, ordinal = 0, process = 0;
};

/// Lays results along the kernels of the timeline.
class Matcher {
 public:
  Matcher(Session& s, std::size_t first_result) : s_(s), first_(first_result) {}

  void run() {
    for (std::size_t i = first_; i < s_.measurements.size(); ++i) {
      if (s_.measurements[i].scope == model::MeasuredScope::kKernel)
        wanted_[key_of(s_.measurements[i].ranges)];
    }
    if (wanted_.empty() || s_.kernels.empty())
      return;
    sweep();
    std::map<std::string, std::size_t> at;
    std::vector<std::string> unmet;
    std::uint64_t missed = 0;
    for (std::size_t i = first_; i < s_.measurements.size(); ++i) {
      model::Measurement& result = s_.measurements[i];
      if (result.scope != model::MeasuredScope::kKernel || result.kernel_name == kNone)
        continue;
      const std::string key = key_of(result.ranges);
      const std::vector<Place>& places = wanted_[key];
      std::size_t& next = at[key];
      const auto same = [&](const Place& place) {
        return same_kernel(s_.kernels[place.kernel].name, result.kernel_name);
      };
      auto found =
          std::find_if(places.begin() + static_cast<std::ptrdiff_t>(std::min(next, places.size())),
                       places.end(),
                       same);
      if (found == places.end())
        found = std::ranges::find_if(places, same);  // more rounds than in the timeline
      if (found == places.end()) {
        ++missed;
        const std::string name(s_.strings.view(s_.kernel_names[result.kernel_name].short_name));
        std::string ranges = "no range";
        if (!key.empty())
          ranges = base::printable(key);
        const std::string text = base::printable(name) + " in " + ranges;
        if (unmet.size() < 5 && std::ranges::find(unmet, text) == unmet.end())
          unmet.push_back(text);
        continue;
      }
      next = static_cast<std::size_t>(found - places.begin()) + 1;
      const model::Kernel& kernel = s_.kernels[found->kernel];
      result.process = found->process;
      result.ordinal = found->ordinal;
      result.stream = kernel.stream;
      result.device = s_.streams[kernel.stream].device;
      result.kernel_name = kernel.name;
    }
    if (missed > 0) {
      std::string detail =
          "results of ncu for kernels that the timeline lacks: " + base::join(unmet, ", ");
      if (missed > unmet.size())
        detail += " ...";
      s_.losses.push_back({"unjoined_results", missed, std::move(detail)});
    }
  }

 private:
  /// Push/pop stacks by domain name, as text: the same for results and for the timeline.
  template <class Ranges>
  std::string key_of(const Ranges& ranges) {
    std::map<std::string_view, std::string> stacks;
    for (const model::OpenRange& range : ranges) {
      if (range.kind != model::RangeKind::kPushPop)
        continue;
      std::string& stack = stacks[s_.strings.view(s_.domains[range.domain].name)];
      if (!stack.empty())
        stack += " > ";
      stack += s_.strings.view(range.name);
    }
    std::string key;
    for (const auto& [domain, stack] : stacks) {
      if (!key.empty())
        key += "; ";
      if (!domain.empty())
        key.append(domain).append("@");
      key += stack;
    }
    return key;
  }

  bool same_kernel(std::uint32_t a, std::uint32_t b) const {
    const model::KernelName &x = s_.kernel_names[a], &y = s_.kernel_names[b];
    if (x.short_name != 0 && x.short_name == y.short_name)
      return true;
    return x.demangled != 0 && x.demangled == y.demangled;
  }

  /// For every kernel in launch order: its path, and its position among the kernels of the
  /// innermost occurrence.
  void sweep() {
    std::vector<std::uint32_t> kernels;
    for (std::uint32_t i = 0; i < s_.kernels.size(); ++i) {
      if (s_.kernels[i].launch != kNone)
        kernels.push_back(i);
    }
    const auto call = [&](std::uint32_t kernel) -> const model::Launch& {
      return s_.launches[s_.kernels[kernel].launch];
    };
    std::ranges::stable_sort(kernels, [&](std::uint32_t a, std::uint32_t b) {
      const model::Launch &x = call(a), &y = call(b);
      if (x.start_ns != y.start_ns)
        return x.start_ns < y.start_ns;
      return s_.kernels[a].start_ns < s_.kernels[b].start_ns;
    });
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_thread;
    for (const std::uint32_t kernel : kernels)
      by_thread[call(kernel).thread].push_back(kernel);
    std::vector<std::uint32_t> ordinals(s_.ranges.size() + s_.threads.size());
    for (auto& [thread, ranges] : OpenRanges::of(s_, by_thread)) {
      std::vector<Place>* places = nullptr;
      bool first = true;
      for (const std::uint32_t kernel : by_thread[thread]) {
        const std::int64_t launch_ns = call(kernel).start_ns;
        if (ranges.move_to(launch_ns, launch_ns) || std::exchange(first, false)) {
          std::vector<model::OpenRange> path;
          for (const std::uint32_t i : ranges.open())
            path.push_back({s_.ranges[i].domain, s_.ranges[i].name, s_.ranges[i].kind});
          places = base::find_value(wanted_, key_of(path));
        }
        std::uint32_t& ordinal =
            ordinals[ranges.open().empty() ? s_.ranges.size() + thread : ranges.open().back()];
        if (places != nullptr)
          places->push_back({kernel, ordinal, s_.threads[thread].process});
        ++ordinal;
      }
    }
  }

  Session& s_;
  std::size_t first_;
  std::map<std::string, std::vector<Place>> wanted_;
};

/// Results of another run, each in the first process that opened its range, else in the first of
/// all.
void bring_home(Session& s, std::size_t first) {
  std::unordered_map<model::StringId, std::uint32_t> home;
  for (const model::Range& range : s.ranges) {
    if (range.thread < s.threads.size())
      home.emplace(range.name, s.threads[range.thread].process);
  }
  for (std::size_t i = first; i < s.measurements.size(); ++i) {
    model::Measurement& result = s.measurements[i];
    result.process = 0;
    if (!result.ranges.empty())
      result.process = base::find_or(home, result.ranges.back().name, 0);
  }
}

}  // namespace

bool has_timeline(const Session& s) {
  if (!s.allocators.empty())
    return true;
  return !s.ranges.empty() || !s.launches.empty() || !s.kernels.empty() || !s.marks.empty() ||
         !s.windows.empty();
}

Session join(std::vector<Session> sessions) {
  if (sessions.empty())
    return {};
  // Timelines first, so that results find theirs.
  std::stable_partition(sessions.begin(), sessions.end(), has_timeline);
  Session all = std::move(sessions.front());
  const bool timeline = has_timeline(all);
  for (std::size_t i = 1; i < sessions.size(); ++i) {
    const std::size_t first = all.measurements.size();
    const bool results_only = timeline && !has_timeline(sessions[i]);
    Appender(all, sessions[i]).run();
    if (!results_only)
      continue;
    bring_home(all, first);
    Matcher(all, first).run();
  }
  return all;
}

void join_to(std::optional<Session>& session, Session more) {
  std::vector<Session> all;
  if (session)
    all.push_back(std::move(*session));
  all.push_back(std::move(more));
  session = all.size() == 1 ? std::move(all.front()) : join(std::move(all));
}

void add_results(Session& to, Session from) {
  const auto of_counters = [](const model::Loss& loss) {
    return loss.kind.area() == model::LossArea::kCounters;
  };
  std::erase_if(to.losses, of_counters);
  std::erase_if(from.losses, [&](const model::Loss& loss) {
    return !of_counters(loss) && loss.kind != "gpu_partial";
  });
  Session results;
  results.strings = std::move(from.strings);
  results.domains = std::move(from.domains);
  results.metrics = std::move(from.metrics);
  results.kernel_names = std::move(from.kernel_names);
  results.kernel_shapes = std::move(from.kernel_shapes);
  results.measurements = std::move(from.measurements);
  results.losses = std::move(from.losses);
  for (model::Measurement& result : results.measurements)
    result.thread = result.device = result.stream = kNone;
  const std::size_t first = to.measurements.size();
  Appender(to, results).run();
  bring_home(to, first);
}

}  // namespace rangescope::read
