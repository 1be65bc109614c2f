// Puts the parts of an export together: dictionaries become indexes of the session, correlation ids
// become launches.
//
// O(rows). Steps: (1) the correlation ids of all GPU work are merged into one bit set; (2) of the
// API calls only those stay that have such an id or wait for the GPU, in place, and each tells its
// id where it went; (3) every kernel, copy, set and graph looks its launch up. The order of every
// vector is that of the file, whatever the number of threads.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/find.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"
#include "read/graph_nodes.hpp"
#include "read/impossible.hpp"
#include "read/index.hpp"
#include "read/nsys/sqlite/parts.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

using model::kNone;

/// Calls `work(first, last)` for `pieces` consecutive spans of [0, size) at once.
template <class Work>
void in_pieces(std::size_t size, int pieces, Work&& work) {
  const std::size_t count = size < 100'000 ? 1 : static_cast<std::size_t>(std::max(1, pieces));
  base::parallel_for(
      count, pieces, [&](std::size_t i) { work(size * i / count, size * (i + 1) / count); });
}

class Assembler {
 public:
  Assembler(Parts parts, int threads) : parts_(std::move(parts)), workers_(threads) {}

  model::Session run() {
    s_.strings = std::move(parts_.nvtx.strings);
    s_.clock = parts_.target.clock;
    resolve_unknown_process();
    keep_calls();
    number_processes_and_threads();
    name_things();
    link_ranges();
    link_launches();
    link_activity();
    link_stream_waits();
    waits();
    link_details();
    name_stream_kinds();
    drop_impossible_work(s_, {}, {}, "");
    place_nodes();
    extents();
    losses();
    return std::move(s_);
  }

 private:
  std::vector<Activity*> activities() {
    return {&parts_.kernels,
            &parts_.copies,
            &parts_.memsets,
            &parts_.graphs,
            &parts_.synchronizations,
            &parts_.memory,
            &parts_.event_records};
  }

  /// Trimmed exports lack globalPid: with one process there is no question whose the work is.
  void resolve_unknown_process() {
    std::set<std::uint64_t> known;
    for (const std::uint64_t thread : parts_.calls.threads.keys())
      known.insert(thread >> 24);
    for (const std::uint64_t thread : parts_.nvtx.threads.keys())
      known.insert(thread >> 24);
    for (const auto& [process, name] : parts_.target.processes) {
      if (known.empty())
        known.insert(process);
    }
    bool unknown = false;
    for (const Activity* part : activities()) {
      for (const StreamKey& key : part->streams.keys())
        unknown |= key.process == kUnknownProcess;
    }
    if (known.size() == 1)
      unknown_is_ = *known.begin();
    if (unknown && unknown_is_ == kUnknownProcess) {
      s_.losses.push_back({"unknown_process",
                           0,
                           "GPU work has no globalPid and the export has " +
                               base::counted(known.size(), "process") +
                               ": that work cannot be attributed to ranges"});
    }
  }
  [[nodiscard]] std::uint64_t real(std::uint64_t process) const {
    if (process == kUnknownProcess)
      return unknown_is_;
    return process;
  }
  /// Number of a correlation id of `process` among those that are used; kNone for kNone.
  [[nodiscard]] std::uint32_t rank_of(std::uint64_t process, std::uint32_t correlation) const {
    if (correlation == kNone)
      return kNone;
    return used_.rank(process, correlation);
  }
  /// The launch with a correlation id of `process`, or kNone.
  [[nodiscard]] std::uint32_t launch_with(std::uint64_t process, std::uint32_t correlation) const {
    const std::uint32_t rank = rank_of(process, correlation);
    if (rank == kNone)
      return kNone;
    return launch_of_[rank];
  }

  /// Steps 1 and 2.
  void keep_calls() {
    for (const Activity* part : activities())
      used_.merge(part->correlations, kUnknownProcess, unknown_is_);
    used_.seal();
    Calls& calls = parts_.calls;
    kinds_.resize(calls.names.size());
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      kinds_[i] = launch_kind(parts_.strings.find(calls.names.keys()[i]).value_or(""));
    launch_of_.assign(used_.size(), kNone);
    std::vector<bool> thread_used(calls.threads.size());
    std::size_t kept = 0;
    // Without GPU work they are all there is; waits alone are none.
    const bool calls_alone = parts_.kernels.kernels.empty() && parts_.copies.copies.empty() &&
                             parts_.memsets.memsets.empty() && parts_.graphs.graphs.empty();
    // The runtime's call and the driver's inside it have one id, as has a call that was recorded
    // twice.
    const auto nested = [](const model::Launch& a, const model::Launch& b) {
      return a.thread == b.thread && ((a.start_ns <= b.start_ns && b.end_ns <= a.end_ns) ||
                                      (b.start_ns <= a.start_ns && a.end_ns <= b.end_ns));
    };
    for (std::size_t i = 0; i < calls.launches.size(); ++i) {
      const model::Launch call = calls.launches[i];
      const std::uint64_t process = calls.threads.keys()[call.thread] >> 24;
      const std::uint32_t rank = rank_of(process, call.correlation);
      if (rank == kNone && kinds_[call.name] != model::LaunchKind::kSynchronize && !calls_alone)
        continue;
      if (rank != kNone) {
        if (launch_of_[rank] == kNone) {
          launch_of_[rank] = static_cast<std::uint32_t>(kept);
        } else if (const model::Launch& first = calls.launches[launch_of_[rank]];
                   nested(first, call)) {
          if (call.start_ns < first.start_ns)
            launch_of_[rank] = static_cast<std::uint32_t>(kept);
        } else if (kinds_[first.name] != model::LaunchKind::kSynchronize &&
                   kinds_[call.name] !=
                       model::LaunchKind::kSynchronize) {  // cudaDeviceReset shares the id of its
                                                           // wait
          ++duplicate_calls_;
        }
      }
      thread_used[call.thread] = true;
      calls.launches[kept] = call;
      calls.launches[kept++].kind = kinds_[call.name];
    }
    calls.launches.resize(kept);
    for (std::size_t i = 0; i < thread_used.size(); ++i) {
      if (thread_used[i])
        threads_seen_.insert(calls.threads.keys()[i]);
    }
  }

  /// Processes and threads that did something, in the order of their ids.
  void number_processes_and_threads() {
    for (const std::uint64_t thread : parts_.nvtx.threads.keys())
      threads_seen_.insert(thread);
    std::set<std::uint64_t> processes;
    for (const std::uint64_t thread : threads_seen_)
      processes.insert(thread >> 24);
    for (const Activity* part : activities()) {
      for (const StreamKey& key : part->streams.keys())
        processes.insert(real(key.process));
    }
    if (processes.empty()) {
      for (const auto& [process, name] : parts_.target.processes)
        processes.insert(process);
    }
    for (const std::uint64_t process : processes) {
      process_of_.emplace(process, static_cast<std::uint32_t>(s_.processes.size()));
      model::Process out;
      out.pid = process == kUnknownProcess ? 0 : pid_of(process);
      if (const auto name = parts_.target.processes.find(process);
          name != parts_.target.processes.end()) {
        out.name = s_.strings.intern(name->second);
      } else if (const auto main = parts_.target.threads.find(process << 24 | pid_of(process));
                 main != parts_.target.threads.end()) {
        out.name = s_.strings.intern(main->second);
      }
      s_.processes.push_back(out);
    }
    for (const std::uint64_t thread : threads_seen_) {
      thread_of_.emplace(thread, static_cast<std::uint32_t>(s_.threads.size()));
      model::Thread out;
      out.process = process_of_.at(thread >> 24);
      out.tid = tid_of(static_cast<std::int64_t>(thread));
      if (const auto name = parts_.target.threads.find(thread); name != parts_.target.threads.end())
        out.name = s_.strings.intern(name->second);
      s_.threads.push_back(out);
    }
  }

  model::StringId string_of(std::int64_t id) {
    if (id < 0)
      return 0;
    if (const auto text = parts_.strings.find(id))
      return s_.strings.intern(*text);
    ++missing_strings_;
    return s_.strings.intern("<string " + std::to_string(id) + ">");
  }

  model::StringId nvtx_name(model::StringId name) const {
    if ((name & kTextId) == 0)
      return name;
    return texts_[name & ~kTextId];
  }

  /// Domains, categories, threads and CUDA objects that the program named.
  void name_things() {
    Nvtx& nvtx = parts_.nvtx;
    for (const std::int64_t id : nvtx.text_ids.keys())
      texts_.push_back(string_of(id));
    std::map<std::uint32_t, model::StringId> created;  // number in nvtx.domains -> name
    for (const Naming& naming : nvtx.namings) {
      // An export may hold the creation of one domain on several threads; the first one with a name
      // counts.
      if (naming.type == 75 && nvtx_name(naming.name) != 0)
        created.emplace(naming.domain, nvtx_name(naming.name));
    }
    for (std::size_t i = 0; i < nvtx.domains.size(); ++i) {
      const DomainKey& key = nvtx.domains.keys()[i];
      if (key.id == 0) {
        domains_.push_back(0);
        continue;
      }
      const auto creation = created.find(static_cast<std::uint32_t>(i));
      model::StringId name = 0;
      if (creation != created.end()) {
        name = creation->second;
      } else {
        ++unnamed_domains_;
        name = s_.strings.intern("<domain " + std::to_string(key.id) + ">");
      }
      domains_.push_back(index_.domains.of({name}));
    }
    for (const AttributesKey& key : nvtx.attributes.keys()) {
      model::Attributes out;
      out.category = key.category;
      out.color_argb = key.color;
      out.has_color = key.has_color != 0;
      out.payload_type = static_cast<model::PayloadType>(key.payload_type);
      out.payload_u64 = key.payload;
      s_.attributes.push_back(out);
    }
    for (const Naming& naming : nvtx.namings) {
      const std::uint32_t owner = base::find_or(process_of_, naming.thread >> 24, 0);
      const model::StringId name = nvtx_name(naming.name);
      switch (naming.type) {
        case 33:
        case 64:
          s_.categories.push_back(
              {domains_[naming.domain], owner, static_cast<std::uint32_t>(naming.id), name});
          break;
        case 39:
          if (const auto thread = thread_of_.find(naming.thread); thread != thread_of_.end())
            s_.threads[thread->second].name = name;
          break;
        case 97:
        case 98:
        case 99:  // NVTX_RESOURCE_TYPE_CUDA_DEVICE, _CONTEXT, _STREAM
          s_.resources.push_back(
              {owner, domains_[naming.domain], 0x40000u + (naming.type - 96), naming.id, name});
          break;
        default: break;
      }
    }
  }

  void link_ranges() {
    Nvtx& nvtx = parts_.nvtx;
    std::vector<std::uint32_t> threads;
    for (const std::uint64_t thread : nvtx.threads.keys())
      threads.push_back(thread_of_.at(thread));
    for (model::Range& range : nvtx.ranges) {
      range.thread = threads[range.thread];
      if (range.end_thread != kNone)
        range.end_thread = threads[range.end_thread];
      range.domain = domains_[range.domain];
      range.name = nvtx_name(range.name);
    }
    for (model::Mark& mark : nvtx.marks) {
      mark.thread = threads[mark.thread];
      mark.domain = domains_[mark.domain];
      mark.name = nvtx_name(mark.name);
    }
    s_.ranges = std::move(nvtx.ranges);
    s_.marks = std::move(nvtx.marks);
  }

  void link_launches() {
    Calls& calls = parts_.calls;
    std::vector<std::uint32_t> threads;
    std::vector<model::StringId> names;
    for (const std::uint64_t thread : calls.threads.keys())
      threads.push_back(base::find_or(thread_of_, thread, 0));
    for (const std::int64_t id : calls.names.keys())
      names.push_back(id < 0 ? 0 : string_of(id));
    for (model::Launch& launch : calls.launches) {
      launch.thread = threads[launch.thread];
      launch.name = names[launch.name];
      if (launch.correlation == kNone)
        launch.correlation = 0;
    }
    s_.launches = std::move(calls.launches);
  }

  std::uint32_t device_index(std::uint32_t process, std::uint32_t ordinal) {
    model::Device device;
    if (const Gpu* gpu = parts_.target.gpu(s_.processes[process].pid, ordinal)) {
      device = gpu->numbers;
      device.name = s_.strings.intern(gpu->name);
      device.uuid = s_.strings.intern(gpu->uuid);
      device.pci_bus = s_.strings.intern(gpu->bus);
      device.chip = s_.strings.intern(gpu->chip);
      device.mig = gpu->name.find(" MIG ") != std::string::npos || gpu->uuid.starts_with("MIG-");
    }
    device.process = process;
    device.ordinal = ordinal;
    return index_.devices.of(device);
  }

  std::vector<std::uint32_t> stream_indexes(const Activity& part) {
    std::vector<std::uint32_t> out;
    for (const StreamKey& key : part.streams.keys()) {
      const std::uint32_t owner = process_of_.at(real(key.process));
      out.push_back(
          index_.streams.of({owner, device_index(owner, key.device), key.context, key.stream, 0}));
    }
    return out;
  }

  std::vector<std::uint32_t> node_indexes(const Activity& part) {
    std::vector<std::uint32_t> out;
    for (const NodeKey& key : part.nodes.keys()) {
      const std::uint32_t owner = process_of_.at(real(key.process));
      out.push_back(nodes_[owner].use(key.id, owner, s_));
    }
    return out;
  }

  /// Step 3 for one table.
  template <class Event>
  void link(const Activity& part, std::vector<Event>& events, model::LaunchKind kind) {
    const std::vector<std::uint32_t> streams = stream_indexes(part), nodes = node_indexes(part);
    in_pieces(events.size(), std::max(1, workers_), [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        Event& event = events[i];
        const std::uint64_t process = real(part.streams.keys()[event.stream].process);
        event.stream = streams[event.stream];
        event.launch = launch_with(process, event.launch);
        if constexpr (requires { event.graph_node; }) {
          if (event.graph_node != kNone)
            event.graph_node = nodes[event.graph_node];
        }
      }
    });
    for (const Event& event : events)
      if (event.launch != kNone)
        launched(s_.launches[event.launch], kind);
  }

  void link_activity() {
    link(parts_.memsets, parts_.memsets.memsets, model::LaunchKind::kMemset);
    link(parts_.copies, parts_.copies.copies, model::LaunchKind::kCopy);
    link(parts_.kernels, parts_.kernels.kernels, model::LaunchKind::kKernel);
    link(parts_.graphs, parts_.graphs.graphs, model::LaunchKind::kGraph);
    link(parts_.synchronizations,
         parts_.synchronizations.synchronizations,
         model::LaunchKind::kSynchronize);
    for (const NameKey& key : parts_.kernels.names.keys()) {
      s_.kernel_names.push_back(
          {string_of(key.demangled), string_of(key.short_name), string_of(key.mangled)});
    }
    s_.kernel_shapes = parts_.kernels.shapes.keys();
    s_.kernels = std::move(parts_.kernels.kernels);
    s_.copies = std::move(parts_.copies.copies);
    s_.memsets = std::move(parts_.memsets.memsets);
    s_.graph_launches = std::move(parts_.graphs.graphs);
  }

  /// Launch and process of an item of a part whose links are numbers still.
  template <class Item>
  std::uint32_t link_call(const Activity& part, Item& item) {
    const std::uint64_t process = real(part.streams.keys()[item.stream].process);
    item.launch = launch_with(process, item.launch);
    return process_of_.at(process);
  }

  void link_details() {
    for (model::MemoryEvent& event : parts_.memory.memory) {
      const StreamKey key = parts_.memory.streams.keys()[event.stream];
      event.process = link_call(parts_.memory, event);
      if (event.launch != kNone)
        event.thread = s_.launches[event.launch].thread;
      const std::uint32_t device = device_index(event.process, key.device);
      event.stream = kNone;
      if (event.pool != 0 && key.stream != 0) {
        event.stream = index_.streams.of({event.process, device, key.context, key.stream, 0});
      }
      event.device = is_on_device(event.kind) ? device : kNone;
    }
    s_.memory_events = std::move(parts_.memory.memory);
    std::ranges::stable_sort(s_.memory_events, {}, [](const model::MemoryEvent& event) {
      return std::pair(event.process, event.at_ns);
    });
    const std::vector<std::uint32_t> streams = stream_indexes(parts_.event_records);
    for (model::EventCall& call : parts_.event_records.events) {
      const std::uint32_t stream = streams[call.stream];
      (void)link_call(parts_.event_records, call);
      call.stream = stream;
      s_.event_calls.push_back(call);
    }
  }

  /// Of rows in which a stream or the CPU waits for an event. Before waits() hands them over.
  void link_stream_waits() {
    const std::vector<model::Synchronization>& waits = parts_.synchronizations.synchronizations;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      const std::uint64_t event = parts_.synchronizations.awaited_events[i];
      if (event == 0 || waits[i].launch == kNone)
        continue;
      const model::SyncKind kind = sync_kind(s_.strings.view(s_.launches[waits[i].launch].name));
      model::EventCall call;
      call.event = event;
      call.launch = waits[i].launch;
      if (kind == model::SyncKind::kStreamWaitEvent) {
        call.operation = model::EventOperation::kStreamWait;
        call.stream = waits[i].stream;
        s_.event_calls.push_back(call);
      } else if (kind == model::SyncKind::kEvent) {
        call.operation = model::EventOperation::kSynchronize;
        s_.event_calls.push_back(call);
      }
    }
  }

  void name_stream_kinds() {
    std::map<std::array<std::uint32_t, 3>, model::StreamKind> kinds;
    for (const StreamInfo& info : parts_.target.streams) {
      kinds[{info.pid, info.context, info.stream}] = info.kind;
    }
    for (model::Stream& stream : s_.streams) {
      const auto found = kinds.find({s_.processes[stream.process].pid, stream.context, stream.id});
      if (found != kinds.end())
        stream.kind = found->second;
    }
  }

  /// Waits of the CPU: CUPTI's record where there is one, the call itself otherwise; nested calls
  /// count once.
  void waits() {
    s_.synchronizations = std::move(parts_.synchronizations.synchronizations);
    for (model::Synchronization& wait : s_.synchronizations) {
      if (wait.launch == kNone)
        continue;
      const std::string_view api = s_.strings.view(s_.launches[wait.launch].name);
      if (!api.empty())
        wait.kind = sync_kind(api);  // the numbers of syncType changed between schemas
    }
    add_waits_of_calls(s_);
  }

  void place_nodes() {
    for (const NodeEvent& event : parts_.nodes) {
      const auto process = process_of_.find(event.thread >> 24);
      const std::uint32_t thread = base::find_or(thread_of_, event.thread, kNone);
      if (process == process_of_.end())
        continue;
      const auto original = event.original == event.id ? 0 : event.original;
      nodes_[process->second].add({event.id, original, thread, event.at_ns});
    }
    for (const auto& [process, nodes] : nodes_)
      nodes.place(s_);
  }

  void extents() {
    const std::int64_t duration = parts_.target.duration_ns;
    s_.begin_ns = kNever;
    set_extents(s_);
    const bool empty = s_.begin_ns == kNever;
    if (duration > 0 && (empty || (s_.begin_ns >= 0 && s_.end_ns <= duration)))
      s_.begin_ns = 0, s_.end_ns = duration;
    else if (empty)
      s_.begin_ns = 0;
  }

  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    if (count > 0)
      s_.losses.push_back({kind, count, std::move(detail)});
  }

  void losses() {
    for (const Outcome* outcome : parts_.outcomes()) {
      lose("bad_rows",
           outcome->bad_rows,
           outcome->table + ": rows left out, the first because its " + outcome->bad_reason);
      if (outcome->scanned.damage) {
        s_.losses.push_back({"damaged_table",
                             0,
                             outcome->table + ": damaged after " +
                                 base::counted(outcome->scanned.rows, "row") + " (" +
                                 outcome->scanned.damage->what +
                                 "); later rows are missing from every number"});
      }
    }
    if (!model::ran_on_gpu(s_))
      lose("no_gpu_work",
           s_.launches.size(),
           "CUDA API calls were recorded, but no kernel, copy or set of a GPU");
    lose("duplicate_correlation",
         duplicate_calls_,
         "CUPTI_ACTIVITY_KIND_RUNTIME.correlationId occurs twice in a process: the first call was "
         "taken");
    lose("missing_string", missing_strings_, "names that StringIds does not hold");
    lose("unnamed_domain", unnamed_domains_, "NVTX domains whose creation was not recorded");
    lose("unknown_nvtx_event",
         parts_.nvtx.unknown_types,
         "rows of NVTX_EVENTS of an unknown eventType");
    for (model::Loss& loss : parts_.target.diagnostics)
      s_.losses.push_back(std::move(loss));
  }

  Parts parts_;
  int workers_;
  model::Session s_;
  Index index_{s_};
  std::uint64_t unknown_is_ = kUnknownProcess;
  Correlations used_;
  std::vector<std::uint32_t> launch_of_;  ///< rank of a correlation id -> index in launches
  std::vector<model::LaunchKind> kinds_;  ///< by number in calls.names
  std::set<std::uint64_t> threads_seen_;  ///< globalTid
  std::map<std::uint64_t, std::uint32_t> process_of_, thread_of_;
  std::map<std::uint32_t, GraphNodes> nodes_;  ///< by process
  std::vector<std::uint32_t> domains_;         ///< by number in nvtx.domains
  std::vector<model::StringId> texts_;         ///< by number in nvtx.text_ids
  std::uint64_t duplicate_calls_ = 0, missing_strings_ = 0, unnamed_domains_ = 0;
};

}  // namespace

model::Session assemble(Parts parts, int threads) {
  return Assembler(std::move(parts), threads).run();
}

}  // namespace rangescope::read::nsys_sqlite
