#include "read/kineto/build.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/backward.hpp"
#include "read/impossible.hpp"
#include "read/index.hpp"
#include "read/kineto/event.hpp"
#include "read/kineto/idle_threads.hpp"
#include "read/kineto/memory.hpp"
#include "read/kineto/names.hpp"
#include "read/kineto/overhead.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::kineto {
namespace {

using model::kNone;

constexpr std::int64_t kMicrosecond = 1000;

std::uint64_t thread_key(std::uint32_t pid, std::uint32_t tid) {
  return std::uint64_t{pid} << 32 | tid;
}

template <class Id>
std::uint32_t count(const std::vector<Id>& all) {
  return static_cast<std::uint32_t>(all.size());
}

class Builder {
 public:
  /// An event that could not be parsed.
  void bad() { ++bad_events_; }
  /// One whose duration is missing, negative or no number.
  void bad_length() { ++bad_lengths_; }
  /// Events that describe a program: without any it is no trace of PyTorch.
  [[nodiscard]] std::uint64_t known() const { return known_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  /// What the trace knows about the job: ", rank 0 of 2, 1 process group, nccl"; "" where nothing.
  [[nodiscard]] const std::string& job() const { return job_; }

  /// A member of the root besides the events: deviceProperties, distributedInfo,
  /// baseTimeNanoseconds ...
  void member(std::string_view key, std::string_view json) {
    if (key == "baseTimeNanoseconds") {
      base_ns_ = base::to_int(json).value_or(0);
      return;
    }
    if (key != "deviceProperties" && key != "distributedInfo")
      return;
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS)
      return;
    if (key == "distributedInfo") {
      const auto number = [&](std::string_view name, std::int64_t otherwise) {
        std::int64_t value = -1;
        const bool is_plausible =
            root[name].get(value) == simdjson::SUCCESS && value >= 0 && value < (1 << 30);
        if (!is_plausible)
          return otherwise;
        return value;
      };
      if (std::string_view backend; root["backend"].get(backend) == simdjson::SUCCESS)
        backend_ = backend;
      const std::int64_t ranks = number("world_size", 0), groups = number("pg_count", 0);
      rank_ = number("rank", -1);
      world_ = static_cast<std::uint32_t>(ranks);
      if (rank_ >= 0 && ranks > 0)
        job_ = ", rank " + std::to_string(rank_) + " of " + std::to_string(ranks);
      if (groups > 0)
        job_ += ", " + base::counted(static_cast<std::uint64_t>(groups), "process group");
      if (!backend_.empty())
        job_ += ", " + backend_;
      return;
    }
    simdjson::dom::array devices;
    if (root.get(devices) != simdjson::SUCCESS)
      return;
    for (const simdjson::dom::element properties : devices) {
      const auto number = [&](std::string_view name) -> std::uint64_t {
        std::uint64_t value = 0;
        if (properties[name].get(value) != simdjson::SUCCESS)
          return 0;
        return value;
      };
      const auto small = [&](std::string_view name) {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(number(name), kNone));
      };
      model::Device device;
      if (std::string_view name; properties["name"].get(name) == simdjson::SUCCESS)
        device.name = s_.strings.intern(name);
      device.ordinal = small("id");
      device.compute_major = small("computeMajor");
      device.compute_minor = small("computeMinor");
      device.sm_count = small("numSms");
      device.memory_bytes = number("totalGlobalMem");
      (void)index_.devices.of(device);
    }
  }

  static std::string_view category_of(const Event& event) {
    if (event.legacy_cpu)
      return "cpu_op";
    if (event.legacy_gpu)
      return "gpu_user_annotation";
    return event.category;
  }

  void add(const Event& event) {
    ++events_;
    if (event.phase == 'M')
      return metadata(event);
    if (event.phase == 'i') {
      if (event.name == "[memory]")
        memory(event);
      return;
    }
    if (event.phase != 'X')
      return;
    const std::string_view category = category_of(event);
    const bool gpu_work = category == "kernel" || category == "Kernel" ||
                          category == "gpu_memcpy" || category == "gpu_memset" ||
                          category == "Memcpy" || category == "Memset";
    // A range or call without a length was open when recording stopped; work or a wait of no length
    // would be one of 0.
    const bool must_end = gpu_work || category == "cuda_sync";
    if (!event.start_ns) {
      lost_gpu_work_ |= gpu_work;
      return bad();
    }
    const bool lacks_end = must_end && !event.length_ns;
    const bool is_negative = event.length_ns && *event.length_ns < 0;
    if (event.bad_length || lacks_end || is_negative)
      return leave_out_length(event, gpu_work);
    fraction_ |= event.fraction;
    if (category == "Trace") {
      if (span_end_ == 0 && event.length_ns) {
        span_begin_ = *event.start_ns;
        span_end_ = *event.start_ns + *event.length_ns;
      }
      return;
    }
    if (gpu_work && (event.stream || event.tid)) {
      ++known_;
      return kernel(event);
    }
    if (!event.pid || !event.tid) {
      lost_gpu_work_ |= gpu_work;
      return bad();
    }
    ++known_;
    if (category == "cpu_op" || category == "user_annotation" || category == "Operator") {
      range(event, 0);
      if (!event.collective.empty())
        collective(event);
      return;
    }
    if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime" ||
        category == "xpu_runtime" || category == "hip_runtime")
      return call(event);
    if (category == "cuda_sync")
      return wait(event);
    if (category == "python_function") {
      constexpr std::string_view kModule = "nn.Module: ";
      if (!event.name.starts_with(kModule))
        return range(event, index_.domain("python"));
      Event module = event;
      module.name.remove_prefix(kModule.size());
      return range(module, index_.domain(model::kModuleDomain));
    }
    if (category == "gpu_user_annotation") {
      const std::uint32_t device = event.device.value_or(*event.pid),
                          stream = event.stream.value_or(*event.tid);
      return range(
          event,
          index_.domain("gpu_annotation"),
          no_thread("GPU " + std::to_string(device) + " stream " + std::to_string(stream), stream));
    }
    if (category == "overhead")
      return range(event, index_.domain("overhead"), no_thread("profiler", 0));
    if (category == "cuda_profiler_range")
      return;
    --known_;
    ++unread_[std::string(category)];
  }

  /// Links and sorts. Call it once.
  model::Session finish() {
    for (auto& thread : s_.threads)
      if (thread.process == kNone)
        thread.process = s_.processes.empty() ? process(0) : 0;
    memory_events_.finish(s_);
    if (const std::uint32_t python = find_domain("python"); python != kNone)
      idle_threads_ = leave_out_idle_threads(s_, python);
    order_ranges();
    if (const std::uint32_t overhead = find_domain("overhead"); overhead != kNone)
      take_out_overhead(overhead, s_);
    number_collectives();
    link_work();
    drop_impossible_work(s_, {}, {}, "");
    link_waits();
    for (model::Process& process : s_.processes) {
      process.operators = true;
      if (const auto name = process_names_.find(process.pid); name != process_names_.end())
        process.name = name->second;
      if (rank_ < 0)
        continue;
      process.rank = static_cast<std::uint32_t>(rank_);
      process.world = world_;
    }
    for (model::Thread& thread : s_.threads) {
      const auto name =
          thread_names_.find(thread_key(s_.processes[thread.process].pid, thread.tid));
      if (thread.name == 0 && name != thread_names_.end())
        thread.name = name->second;
    }
    for (model::Device& device : s_.devices)
      device.process = s_.processes.empty() ? kNone : 0;
    extents();
    losses();
    return std::move(s_);
  }

 private:
  void leave_out_length(const Event& event, bool gpu_work) {
    lost_gpu_work_ |= gpu_work;
    const bool is_backward = gpu_work && event.length_ns;
    if (is_backward)
      ++backward_work_;
    if (!is_backward)
      bad_length();
  }

  std::uint32_t process(std::uint32_t pid) { return index_.processes.of({pid}); }

  std::uint32_t thread(std::uint32_t pid, std::uint32_t tid) {
    return index_.threads.of({process(pid), tid});
  }

  std::uint32_t no_thread(const std::string& name, std::uint32_t number) {
    const auto [at, added] = no_threads_.emplace(name, count(s_.threads));
    if (added)
      s_.threads.push_back({kNone, number, s_.strings.intern(name)});
    return at->second;
  }

  /// kNone where no range is in a domain of that name.
  [[nodiscard]] std::uint32_t find_domain(std::string_view name) const {
    for (std::uint32_t i = 0; i < s_.domains.size(); ++i)
      if (s_.strings.view(s_.domains[i].name) == name)
        return i;
    return kNone;
  }

  std::uint32_t stream_key(const Event& event) {
    const std::uint32_t device = event.device.value_or(event.pid.value_or(0)),
                        context = event.context.value_or(0),
                        stream = event.stream.value_or(event.tid.value_or(0));
    return streams_.number({device, context, stream});
  }

  std::uint32_t attributes(const Event& event) {
    model::StringId text = 0;
    if (!event.collective.empty()) {
      std::string what(event.collective);
      if (event.elements)
        what += " of " + std::to_string(*event.elements) + ' ' + std::string(event.dtype);
      if (event.group_size)
        what += " over " + base::counted(static_cast<std::uint64_t>(*event.group_size), "rank");
      const std::string_view group = base::non_empty_or(event.group, event.group_id);
      if (!group.empty())
        what += " (" + std::string(group) + ')';
      text = s_.strings.intern(what);
    } else if (!event.shapes.empty()) {
      text = s_.strings.intern(event.shapes);
    }
    const bool sized = !event.collective.empty() && event.elements && bytes_of(event.dtype) > 0;
    if (!sized && !event.sequence) {
      if (text == 0)
        return kNone;
      const auto [at, added] = texts_.emplace(text, count(s_.attributes));
      if (added)
        s_.attributes.emplace_back().text = text;
      return at->second;
    }
    model::Attributes& out = s_.attributes.emplace_back();
    out.text = text;
    if (sized) {
      out.payload_type = model::PayloadType::kUint64;
      out.payload_u64 = static_cast<std::uint64_t>(std::max<std::int64_t>(0, *event.elements)) *
                        bytes_of(event.dtype);
    } else {
      out.payload_type = model::PayloadType::kInt64;
      out.payload_i64 = *event.sequence;
    }
    return count(s_.attributes) - 1;
  }

  static std::int64_t end_of(const Event& event) {
    if (!event.length_ns)
      return model::kOpen;
    return *event.start_ns + *event.length_ns;
  }

  void range(const Event& event, std::uint32_t in, std::uint32_t on = kNone) {
    model::Range out;
    out.start_ns = *event.start_ns;
    out.end_ns = end_of(event);
    out.name = s_.strings.intern(event.name);
    out.thread = on == kNone ? thread(*event.pid, *event.tid) : on;
    out.domain = in;
    out.attributes = attributes(event);
    out.end_thread = event.external_id.value_or(kNone);  // until order_ranges()
    s_.ranges.push_back(out);
  }

  /// record_param_comms, once more as what NCCL itself would have marked: a range of the domain
  /// NCCL with communicator, ranks and bytes, by which calls of several ranks are joined. The bytes
  /// are those of one rank's part, as NCCL counts.
  void collective(const Event& event) {
    const std::string_view name = nccl_name(event.collective);
    if (name.empty() || backend_.find("nccl") == std::string::npos ||
        event.group_size.value_or(0) < 2)
      return;
    const bool parts_out = name == "ncclReduceScatter" || name == "ncclScatter",
               all_to_all = name == "ncclAlltoAll";
    const std::int64_t elements = (parts_out ? event.elements_out : event.elements).value_or(-1);
    const auto element_bytes = static_cast<std::int64_t>(bytes_of(event.dtype));
    constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max() / 16;
    std::int64_t bytes = -1;
    if (element_bytes > 0 && elements >= 0 && elements <= kMostElements)
      bytes = elements * element_bytes;
    if (all_to_all && bytes > 0) {
      if (event.collective.ends_with('v'))
        bytes = -1;  // its parts differ in size
      else
        bytes /= *event.group_size;
    }
    Event call = event;
    call.name = name;
    call.collective = {};  // no text and no payload: the numbers are in fields
    call.shapes.clear();
    call.sequence.reset();
    range(call, index_.domain("NCCL"));
    s_.ranges.back().attributes = count(s_.attributes);
    s_.attributes.emplace_back();
    const std::string group = std::string(event.group_id) + '\n' + std::string(event.group_ranks);
    collectives_[s_.ranges.back().attributes] = {base::fnv1a(group) | 1, *event.group_size, bytes};
  }

  void call(const Event& event) {
    model::Launch out;
    out.start_ns = *event.start_ns;
    out.end_ns = end_of(event);
    out.thread = thread(*event.pid, *event.tid);
    out.correlation = event.correlation.value_or(0);
    out.name = s_.strings.intern(event.name);
    out.kind = launch_kind(cuda_name(event.name));
    if (event.correlation)
      calls_.emplace_back(*event.correlation, count(s_.launches));
    s_.launches.push_back(out);
  }

  /// Kernels, copies and sets; their `launch` holds the correlation id until link_work().
  void kernel(const Event& event) {
    if (*event.start_ns == 0 && *event.length_ns == 0) {
      ++untimed_work_;
      return;
    }
    const std::int64_t end = *event.start_ns + *event.length_ns;
    const std::uint32_t correlation = event.correlation.value_or(kNone),
                        external = event.external_id.value_or(kNone), key = stream_key(event);
    std::uint32_t node = kNone;
    if (event.graph_node && *event.graph_node != 0) {
      node = nodes_.number(*event.graph_node);
      if (node == s_.graph_nodes.size())
        s_.graph_nodes.push_back(
            {*event.graph_node, event.graph.value_or(*event.graph_node >> 32), 0, kNone});
    }
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, event.bytes.value_or(0)));
    if (event.category == "gpu_memcpy" || event.category == "Memcpy") {
      const CopyMemory memory = copy_memory(event.name);
      s_.copies.push_back({*event.start_ns,
                           end,
                           bytes,
                           correlation,
                           key,
                           node,
                           copy_kind(event.name),
                           false,
                           memory.source,
                           memory.destination});
      copy_external_.push_back(external);
      return;
    }
    if (event.category == "gpu_memset" || event.category == "Memset") {
      s_.memsets.push_back({*event.start_ns, end, bytes, correlation, key, node});
      memset_external_.push_back(external);
      return;
    }
    model::KernelShape shape;
    shape.grid = event.grid;
    shape.block = event.block;
    shape.registers_per_thread = event.registers.value_or(0);
    s_.kernels.push_back({*event.start_ns,
                          end,
                          correlation,
                          index_.kernel_name(event.name),
                          index_.shapes.of(shape),
                          key,
                          node});
    kernel_external_.push_back(external);
  }

  /// Of "Stream Wait Event", "cudaStreamSynchronize" ...
  static model::SyncKind sync_kind_in(std::string_view name) {
    constexpr std::pair<std::string_view, model::SyncKind> kWords[] = {
        {"Wait", model::SyncKind::kStreamWaitEvent},
        {"Stream", model::SyncKind::kStream},
        {"Event", model::SyncKind::kEvent},
        {"Context", model::SyncKind::kContext}};
    for (const auto& [word, kind] : kWords)
      if (name.find(word) != std::string_view::npos)
        return kind;
    return model::SyncKind::kUnknown;
  }

  void wait(const Event& event) {
    model::Synchronization out;
    out.start_ns = *event.start_ns;
    out.end_ns = *event.start_ns + *event.length_ns;
    out.kind = sync_kind_in(base::non_empty_or(event.label, event.name));
    out.launch = event.correlation.value_or(kNone);
    s_.synchronizations.push_back(out);
    if (!event.record_correlation || !event.awaited_stream)
      return;
    Event recorded = event;
    recorded.stream = event.awaited_stream;
    event_waits_.push_back(
        {out.launch, *event.record_correlation, stream_key(event), stream_key(recorded), out.kind});
  }

  /// Of waits that name the call that recorded their event. Its correlation id numbers the event.
  void link_events() {
    std::set<std::uint32_t> recorded;
    for (const EventWait& wait : event_waits_) {
      const std::uint32_t record = launch_of(wait.record_correlation, kNone),
                          launch = launch_of(wait.correlation, kNone);
      if (record == kNone || launch == kNone)
        continue;
      const std::uint32_t process = s_.threads[s_.launches[record].thread].process;
      const auto stream = [&](std::uint32_t key) {
        const auto& [device, context, id] = streams_.keys()[key];
        return index_.streams.of({process, index_.devices.of({kNone, device}), context, id});
      };
      const std::uint64_t event = wait.record_correlation;
      if (recorded.insert(record).second)
        s_.event_calls.push_back(
            {event, record, stream(wait.awaited_stream), model::EventOperation::kRecord});
      if (wait.kind == model::SyncKind::kStreamWaitEvent)
        s_.event_calls.push_back(
            {event, launch, stream(wait.stream), model::EventOperation::kStreamWait});
      else
        s_.event_calls.push_back({event, launch, kNone, model::EventOperation::kSynchronize});
    }
  }

  void metadata(const Event& event) {
    if (!event.pid || event.label.empty())
      return;
    if (event.name == "process_name")
      process_names_[*event.pid] = s_.strings.intern(event.label);
    if (event.name == "thread_name" && event.tid)
      thread_names_[thread_key(*event.pid, *event.tid)] = s_.strings.intern(event.label);
  }

  /// What the allocator gave (or took back, then negative), at its moment.
  void memory(const Event& event) {
    if (!event.bytes || !event.start_ns || !event.pid || !event.tid)
      return;
    model::Attributes& with = s_.attributes.emplace_back();
    with.payload_type = model::PayloadType::kInt64;
    with.payload_i64 = *event.bytes;
    const std::uint32_t owner = thread(*event.pid, *event.tid), domain = index_.domain("memory");
    const model::StringId name = s_.strings.intern(event.name);
    s_.marks.push_back({*event.start_ns, name, owner, domain, count(s_.attributes) - 1});
    memory_events_.add(event, owner);
  }

  /// In the order of the pushes: of two that begin at once the longer one, else the one that
  /// PyTorch numbered first, holds the other. Traces of whole microseconds have ends that lie up to
  /// one behind that of what holds them.
  void order_ranges() {
    const auto id = [](const model::Range& range) { return range.end_thread; };
    std::ranges::sort(s_.ranges, [&](const model::Range& a, const model::Range& b) {
      if (a.thread != b.thread)
        return a.thread < b.thread;
      if (a.start_ns != b.start_ns)
        return a.start_ns < b.start_ns;
      if (a.end_ns != b.end_ns)
        return a.end_ns > b.end_ns;
      return id(a) < id(b);
    });
    if (!fraction_) {
      std::vector<const model::Range*> open;
      for (model::Range& range : s_.ranges) {
        if (range.domain != 0)
          continue;
        while (!open.empty() &&
               (open.back()->thread != range.thread || open.back()->end_ns <= range.start_ns))
          open.pop_back();
        if (!open.empty() && range.end_ns != model::kOpen && range.end_ns > open.back()->end_ns &&
            range.end_ns - open.back()->end_ns <= kMicrosecond)
          range.end_ns = open.back()->end_ns;
        open.push_back(&range);
      }
    }
  }

  void number_collectives() {
    if (collectives_.empty())
      return;
    const model::StringId id = s_.strings.intern("NCCL communicator ID"),
                          ranks = s_.strings.intern("No. of ranks"),
                          size = s_.strings.intern("Message size [bytes]");
    for (std::uint32_t i = 0; i < s_.ranges.size(); ++i) {
      const auto found = collectives_.find(s_.ranges[i].attributes);
      if (found == collectives_.end())
        continue;
      const auto add = [&](model::StringId name, std::uint64_t bits) {
        s_.payload_fields.push_back({i, name, model::PayloadType::kUint64, bits});
      };
      add(id, found->second.communicator);
      add(ranks, static_cast<std::uint64_t>(found->second.ranks));
      if (found->second.bytes >= 0)
        add(size, static_cast<std::uint64_t>(found->second.bytes));
    }
  }

  std::uint32_t launch_of(std::uint32_t correlation, std::uint32_t external) {
    const auto by_first = [](const auto& pair, std::uint32_t id) { return pair.first < id; };
    if (correlation != kNone) {
      const auto call = std::lower_bound(calls_.begin(), calls_.end(), correlation, by_first);
      if (call != calls_.end() && call->first == correlation)
        return call->second;
    }
    if (external == kNone)
      return kNone;
    const auto found = std::lower_bound(operators_.begin(), operators_.end(), external, by_first);
    if (found == operators_.end() || found->first != external)
      return kNone;
    ++placed_;
    const auto [at, added] = standing_in_.emplace(found->second, count(s_.launches));
    if (added) {
      const model::Range& range = s_.ranges[found->second];
      s_.launches.push_back(
          {range.start_ns, model::kOpen, range.thread, 0, 0, model::LaunchKind::kKernel});
    }
    return at->second;
  }

  template <class Work>
  void link(std::vector<Work>& works,
            const std::vector<std::uint32_t>& external,
            model::LaunchKind kind) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      Work& work = works[i];
      work.launch = launch_of(work.launch, external[i]);
      std::uint32_t owner = 0;
      if (work.launch != kNone)
        owner = s_.threads[s_.launches[work.launch].thread].process;
      const auto& [device, context, stream] = streams_.keys()[work.stream];
      work.stream = index_.streams.of({owner, index_.devices.of({kNone, device}), context, stream});
      if (work.launch != kNone)
        launched(s_.launches[work.launch], kind);
    }
  }

  void link_work() {
    // A driver call inside a runtime call has its correlation id: the outer one counts.
    std::ranges::sort(calls_, [&](const auto& a, const auto& b) {
      if (a.first != b.first)
        return a.first < b.first;
      return s_.launches[a.second].start_ns < s_.launches[b.second].start_ns;
    });
    for (std::uint32_t i = 0; i < s_.ranges.size(); ++i) {
      model::Range& range = s_.ranges[i];
      if (range.end_thread != kNone && range.domain == 0)
        operators_.emplace_back(range.end_thread, i);
      range.end_thread = kNone;
    }
    std::ranges::sort(operators_);
    if (s_.processes.empty() && (!s_.kernels.empty() || !s_.copies.empty() || !s_.memsets.empty()))
      (void)process(0);
    link(s_.kernels, kernel_external_, model::LaunchKind::kKernel);
    link(s_.copies, copy_external_, model::LaunchKind::kCopy);
    link(s_.memsets, memset_external_, model::LaunchKind::kMemset);
  }

  void link_waits() {
    for (model::Synchronization& wait : s_.synchronizations)
      wait.launch = launch_of(wait.launch, kNone);
    link_events();
    add_waits_of_calls(s_);
  }

  void extents() {
    if (span_end_ > 0)
      set_extents(s_, span_begin_, span_end_);
    else
      set_extents(s_);
    s_.clock.kind = "trace time";
    constexpr std::int64_t kThisCentury =
        946'684'800'000'000'000;  // 2000-01-01: earlier ones count from the boot
    if (s_.begin_ns > kThisCentury)
      s_.clock.anchor_ns = s_.clock.anchor_unix_ns = s_.begin_ns;
    if (base_ns_ > 0 && s_.clock.anchor_unix_ns == 0) {
      s_.clock.anchor_ns = s_.begin_ns;
      s_.clock.anchor_unix_ns = s_.begin_ns + base_ns_;
    }
  }

  void losses() {
    const auto lose = [&](model::LossKind kind, std::uint64_t count, std::string detail) {
      if (count > 0)
        s_.losses.push_back({kind, count, std::move(detail)});
    };
    lose("bad_events",
         bad_events_,
         "events that are not JSON, or have no time, process or thread, were left out");
    lose("bad_events",
         bad_lengths_,
         "events whose duration is missing, negative or no number were left out");
    lose("impossible_time", backward_work_, "GPU work that ends before it starts was left out");
    lose("impossible_time", untimed_work_, "GPU work whose times are zero was left out");
    for (const auto& [category, events] : unread_)
      lose("unread_events",
           events,
           "events of the category \"" + base::printable(category) + "\" are not read");
    lose("unread_events", idle_threads_, "Python threads that only waited were left out");
    if (lost_gpu_work_ && s_.kernels.empty())
      s_.unrecorded.kernels = s_.unrecorded.copies = true;
    lose("placed_by_operator",
         placed_,
         "GPU work without its CUDA call in the trace belongs to the operator that the trace "
         "names; its launch latency "
         "is counted from the operator's start");
  }

  model::Session s_;
  Index index_{s_};
  MemoryEvents memory_events_;
  std::map<std::string, std::uint32_t>
      no_threads_;  ///< what is on a timeline of its own: GPU streams, the profiler
  base::Numbering<std::array<std::uint32_t, 3>> streams_;  ///< device, context and number
  std::unordered_map<model::StringId, std::uint32_t> texts_;
  base::Numbering<std::uint64_t> nodes_;
  std::map<std::uint32_t, model::StringId> process_names_;
  std::unordered_map<std::uint64_t, model::StringId> thread_names_;
  struct Collective {
    std::uint64_t communicator;
    std::int64_t ranks, bytes;  ///< bytes: -1 where the trace has none
  };
  std::unordered_map<std::uint32_t, Collective> collectives_;  ///< by attributes of their ranges
  std::string backend_;
  std::vector<std::uint32_t> kernel_external_, copy_external_, memset_external_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> calls_;  ///< correlation id, launch
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      operators_;  ///< external id, range; made when asked for
  std::map<std::string, std::uint64_t, std::less<>> unread_;  ///< events by category
  std::map<std::uint32_t, std::uint32_t>
      standing_in_;  ///< range: launch that replaces its missing call
  std::int64_t span_begin_ = 0, span_end_ = 0, base_ns_ = 0;
  std::int64_t rank_ = -1;
  std::uint32_t world_ = 0;
  std::string job_;
  std::uint64_t events_ = 0, known_ = 0, bad_events_ = 0, bad_lengths_ = 0, placed_ = 0,
                idle_threads_ = 0;
  std::uint64_t backward_work_ = 0, untimed_work_ = 0;
  /// A wait for a CUDA event; streams are numbers of streams_.
  struct EventWait {
    std::uint32_t correlation, record_correlation, stream, awaited_stream;
    model::SyncKind kind;
  };
  std::vector<EventWait> event_waits_;
  bool fraction_ = false, lost_gpu_work_ = false;
};

}  // namespace

base::Result<model::Session> build(Splitter splitter, const std::string& name) {
  Builder builder;
  EventParser parser;
  Event event;
  Piece piece;
  while (splitter.next(piece)) {
    if (!piece.key.empty())
      builder.member(piece.key, piece.text);
    else if (parser.parse(piece.text, event))
      builder.add(event);
    else
      builder.bad();
  }
  const std::string place = name + ": byte " + std::to_string(splitter.offset());
  if (builder.known() == 0) {
    if (!splitter.broken().empty())
      return base::fail(base::Code::kBadData,
                        "this JSON cannot be read: " + splitter.broken(),
                        place,
                        "Check that the file was copied whole.");
    return base::fail(base::Code::kBadData,
                      builder.events() == 0
                          ? "a trace without events"
                          : "a trace without operators, CUDA calls or kernels of PyTorch",
                      name,
                      "Give what torch.profiler.profile(...).export_chrome_trace(FILE) wrote.");
  }
  model::Session session = builder.finish();
  if (!splitter.broken().empty())
    session.losses.push_back(
        {"torn_tail", 1, splitter.early_end() + ": " + place + "; the rest is missing"});
  session.sources.push_back({name, "kineto", "PyTorch profiler" + builder.job(), {}});
  return session;
}

struct Events::Held {
  Builder builder;
};

Events::Events() : held_(std::make_unique<Held>()) {}
Events::~Events() = default;

void Events::add(const Event& event) {
  held_->builder.add(event);
}

void Events::bad() {
  held_->builder.bad();
}

void Events::bad_length() {
  held_->builder.bad_length();
}

std::uint64_t Events::known() const {
  return held_->builder.known();
}

model::Session Events::finish() {
  model::Session session = held_->builder.finish();
  for (model::Process& process : session.processes)
    process.operators = false;
  return session;
}

}  // namespace rangescope::read::kineto
