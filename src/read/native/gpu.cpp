#include "read/native/gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/find.hpp"
#include "base/fs.hpp"
#include "base/units.hpp"
#include "read/graph_nodes.hpp"
#include "read/impossible.hpp"
#include "read/index.hpp"
#include "read/native/call_details.hpp"
#include "read/native/chunks.hpp"
#include "read/native/counters.hpp"
#include "read/native/gpu_clock.hpp"
#include "read/native/gpu_records.hpp"
#include "read/native/memory.hpp"
#include "read/native/modules.hpp"
#include "read/native/pc.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::native {

namespace gpu = wire::gpu;
namespace {

std::string uuid_text(const std::uint8_t (&uuid)[16], bool mig) {
  std::string text = mig ? "MIG-" : "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

// Chips that their compute capability distinguishes; the others need CUPTI's own name for them.
std::string_view chip_of(std::uint32_t major, std::uint32_t minor) {
  static constexpr std::array kChips = {std::tuple{7u, 0u, "GV100"},
                                        std::tuple{8u, 0u, "GA100"},
                                        std::tuple{9u, 0u, "GH100"},
                                        std::tuple{10u, 0u, "GB100"}};
  for (const auto& [chip_major, chip_minor, name] : kChips) {
    if (chip_major == major && chip_minor == minor)
      return name;
  }
  return {};
}

model::LaunchKind launch_kind(std::string_view api) {
  if (api.starts_with("cuLaunch"))
    return model::LaunchKind::kKernel;
  if (api.starts_with("cuGraphLaunch"))
    return model::LaunchKind::kGraph;
  if (api.starts_with("cuMemset") || api.starts_with("cu64Memset"))
    return model::LaunchKind::kMemset;
  for (const char* copy : {"cuMemcpy", "cuMemPrefetch", "cuMemBatch"})
    if (api.starts_with(copy))
      return model::LaunchKind::kCopy;
  if (api.find("Synchronize") != std::string_view::npos)
    return model::LaunchKind::kSynchronize;
  return model::LaunchKind::kOther;
}

/// By gpu::LossKind, whose numbers begin at 1.
constexpr model::LossKind kLosses[] = {"gpu_loss",
                                       "gpu_unavailable",
                                       "gpu_partial",
                                       "dropped_gpu_records",
                                       "unfinished_gpu_work",
                                       "gpu_capture_size",
                                       "gpu_write_failed",
                                       "cupti_failed",
                                       "cupti_let_go",
                                       "impossible_time"};
static_assert(std::size(kLosses) == static_cast<std::size_t>(gpu::LossKind::kImpossible) + 1);

struct KernelKind {
  std::uint32_t name = model::kNone, shape = 0, stream = 0;
};

class GpuReader {
 public:
  GpuReader(std::uint32_t process, model::Session& session, std::string where)
      : process_(process),
        session_(session),
        index_(session),
        counters_(process, session, index_),
        details_(process, session),
        where_(std::move(where)) {
    first_ = {session.launches.size(),
              session.kernels.size(),
              session.copies.size(),
              session.memsets.size(),
              session.graph_launches.size()};
  }

  /// When it began: nothing that it recorded is older.
  void set_start(std::int64_t start_ns) { start_ns_ = start_ns; }

  void take(const GpuRecord& record) {
    if (counters_.take(record) || pc_.take(record))
      return;
    switch (record.head().type) {
      case gpu::Type::kName: take_name(record); break;
      case gpu::Type::kApi: take_api(record); break;
      case gpu::Type::kKind: take_kind(record.as<gpu::KernelKind>()); break;
      case gpu::Type::kKernel: take_kernel(record); break;
      case gpu::Type::kLaunch:
      case gpu::Type::kLaunchIn:
      case gpu::Type::kLaunchOf: take_launch(record); break;
      case gpu::Type::kMemory:
      case gpu::Type::kEvent:
      case gpu::Type::kStreamMade: take_details(record); break;
      case gpu::Type::kModule: take_module(record); break;
      case gpu::Type::kCopy:
      case gpu::Type::kMemset: take_copy(record); break;
      case gpu::Type::kGraphLaunch: take_graph(record.as<gpu::GraphLaunch>()); break;
      case gpu::Type::kGraphNode: take_node(record.as<gpu::GraphNode>()); break;
      case gpu::Type::kDevice: take_device(record); break;
      case gpu::Type::kContext: take_context(record.as<gpu::Context>()); break;
      case gpu::Type::kStream: take_stream(record.as<gpu::Stream>()); break;
      case gpu::Type::kLoss: take_loss(record); break;
      case gpu::Type::kInfo: take_info(record); break;
      case gpu::Type::kClockSample: clock_.add(record.as<gpu::ClockSample>()); break;
    }
  }

  /// What the stream says of itself; "" where it says nothing.
  [[nodiscard]] std::string info(const std::string& key) const {
    return base::find_or(infos_, key, {});
  }

  void finish(const GpuDamage& damage) {
    correct_clock();
    link_launches();
    drop_impossible();
    counters_.finish(where_);
    if (session_.is_window())
      cut_to_window();
    details_.finish(devices_of_contexts());
    pc_.finish(where_, first_.launches, name_of_, session_);
    add_synchronizations();
    modules_.place(first_.launches, session_);
    nodes_.place(session_);
    model::Process& process = session_.processes.at(process_);
    for (std::size_t i = first_.kernels; i < session_.kernels.size(); ++i)
      process.end_ns = std::max(process.end_ns, session_.kernels[i].end_ns);
    for (std::size_t i = first_.graphs; i < session_.graph_launches.size(); ++i) {
      auto& launch = session_.graph_launches[i];
      launch.kernel_nodes = nodes_.kernel_nodes(static_cast<std::uint32_t>(launch.graph_id));
    }
    if (damage.torn_bytes > 0)
      lose("torn_tail", damage.torn_bytes, "bytes after the last complete block were cut off");
    if (damage.bad_records > 0 || undefined_ > 0) {
      lose("bad_gpu_records",
           damage.bad_records + undefined_,
           "records that contradict themselves or earlier ones");
    }
    if (info("end") != "clean" && !unavailable_ && session_.windows.empty()) {
      const std::string interval = info("flush_interval_ms");
      lose("gpu_stream_not_closed",
           0,
           interval.empty() || interval == "0"
               ? std::string("the process ended without closing its GPU stream: its last GPU work "
                             "may be missing")
               : fmt::format("the process ended without closing its GPU stream: GPU work of up to "
                             "two flush intervals "
                             "({} ms each) may be missing",
                             interval));
    }
  }

 private:
  struct Counts {
    std::size_t launches = 0, kernels = 0, copies = 0, memsets = 0, graphs = 0;
  };

  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    session_.losses.push_back({kind, count, where_ + ": " + std::move(detail)});
  }
  std::uint32_t thread(std::uint32_t tid) { return index_.threads.of({process_, tid}); }
  std::uint32_t device(std::uint32_t ordinal) {
    if (ordinal == model::kNone)
      return model::kNone;
    return index_.devices.of({process_, ordinal});
  }
  // A stream is known by context and number; a context names its null stream before any work does.
  std::uint32_t stream(std::uint32_t context, std::uint32_t id, std::uint32_t ordinal) {
    const auto [at, fresh] = stream_of_.try_emplace(
        std::pair{context, id}, static_cast<std::uint32_t>(session_.streams.size()));
    if (fresh)
      session_.streams.push_back({process_, model::kNone, context, id, 0});
    model::Stream& known = session_.streams[at->second];
    if (known.device == model::kNone)
      known.device = device(ordinal);
    return at->second;
  }
  std::uint32_t stream_at(std::uint32_t index) {
    const std::uint32_t defined_stream = base::element_or(streams_, index, model::kNone);
    if (defined_stream == model::kNone)
      return stream(0, 0, model::kNone);
    return defined_stream;
  }

  void take_name(const GpuRecord& record) {
    const auto name = record.as<gpu::Name>();
    name_of_[name.head.id] = index_.mangled_kernel_name(record.text(sizeof name, name.bytes));
  }
  void take_api(const GpuRecord& record) {
    const auto name = record.as<gpu::Name>();
    const std::string_view text = record.text(sizeof name, name.bytes);
    apis_[name.head.id & 0xff] = {session_.strings.intern(text), launch_kind(text)};
  }
  void take_kind(const gpu::KernelKind& kind) {
    model::KernelShape shape;
    std::copy_n(kind.grid, 3, shape.grid.begin());
    std::copy_n(kind.block, 3, shape.block.begin());
    std::copy_n(kind.cluster, 3, shape.cluster.begin());
    shape.registers_per_thread = kind.registers_per_thread;
    shape.static_shared_bytes = kind.static_shared_bytes;
    shape.dynamic_shared_bytes = kind.dynamic_shared_bytes;
    const std::uint32_t shape_index = index_.shapes.of(shape);
    const auto name = name_of_.find(kind.name);
    if (kind.head.id >= kMostKinds)
      return;
    if (kind.head.id >= kinds_.size())
      kinds_.resize(kind.head.id + 1, KernelKind{});
    kinds_[kind.head.id] = {name != name_of_.end() ? name->second : index_.kernel_names.of({}),
                            shape_index,
                            stream_at(kind.stream)};
  }
  void take_kernel(const GpuRecord& record) {
    const auto kernel = record.as<gpu::Kernel>();
    const KernelKind* kind = kernel.kind < kinds_.size() ? &kinds_[kernel.kind] : nullptr;
    if (kind == nullptr || kind->name == model::kNone) {
      ++undefined_;
      return;
    }
    std::size_t extension = 0;
    model::Kernel made;
    if (kernel.head.small & gpu::kHasGraphNode)
      made.graph_node =
          nodes_.use(record.extension(sizeof kernel, extension++), process_, session_);
    std::uint64_t duration = kernel.duration_ns;
    if (kernel.head.small & gpu::kHasLongDuration)
      duration = record.extension(sizeof kernel, extension);
    made.start_ns = kernel.start_ns;
    made.end_ns = kernel.start_ns + static_cast<std::int64_t>(duration);
    made.launch = kernel.head.id;  // the correlation, until finish() knows the calls
    made.name = kind->name;
    made.shape = kind->shape;
    made.stream = kind->stream;
    session_.kernels.push_back(made);
  }
  void take_launch(const GpuRecord& record) {
    const auto launch = record.as<gpu::Launch>();
    const gpu::Type type = launch.head.type;
    const auto index = static_cast<std::uint32_t>(session_.launches.size());
    std::size_t size = sizeof launch;
    if (type == gpu::Type::kLaunchOf) {
      size = sizeof(gpu::LaunchOf);
      const auto [in, made_by] = record.as<gpu::LaunchOf>();
      modules_.launched(index, in.module, in.same, launch.start_ns, made_by);
    } else if (type == gpu::Type::kLaunchIn) {
      size = sizeof(gpu::LaunchIn);
      const auto in = record.as<gpu::LaunchIn>();
      modules_.launched(index, in.module, in.same, launch.start_ns);
    }
    const bool has_long_duration = launch.duration_ns == gpu::kUnknownDuration;
    const bool has_duration = !has_long_duration || launch.head.words * 8u > size;
    const std::uint64_t duration =
        has_long_duration ? record.extension(size, 0) : launch.duration_ns;
    const auto& api = apis_[launch.head.small];
    session_.launches.push_back(
        {launch.start_ns,
         has_duration ? launch.start_ns + static_cast<std::int64_t>(duration) : model::kOpen,
         thread(launch.tid),
         launch.head.id,
         api.first,
         api.second});
  }
  /// Of the call whose record came before it.
  [[nodiscard]] bool follows_its_call(const GpuRecord& record) const {
    const bool has_call = session_.launches.size() > first_.launches;
    return has_call && session_.launches.back().correlation == record.head().id;
  }
  void take_details(const GpuRecord& record) {
    if (!follows_its_call(record)) {
      ++undefined_;
      return;
    }
    const auto launch = static_cast<std::uint32_t>(session_.launches.size() - 1);
    switch (record.head().type) {
      case gpu::Type::kMemory: {
        const auto memory = record.as<gpu::Memory>();
        details_.add(memory, launch, known_stream(memory.context, memory.stream));
        break;
      }
      case gpu::Type::kEvent: {
        const auto event = record.as<gpu::Event>();
        details_.add(event, launch, known_stream(event.context, event.stream));
        break;
      }
      default: {
        const auto created = record.as<gpu::StreamMade>();
        const std::uint32_t index = known_stream(created.context, created.stream);
        if (index == model::kNone)
          break;
        auto kind = model::StreamKind::kBlocking;
        if (created.head.small == 1)
          kind = model::StreamKind::kNonBlocking;
        session_.streams[index].kind = kind;
        break;
      }
    }
    own_clock_calls_.push_back(launch);
  }
  std::uint32_t known_stream(std::uint32_t context, std::uint32_t id) {
    if (id == gpu::kNoStream)
      return model::kNone;
    return stream(context, id, model::kNone);
  }
  std::unordered_map<std::uint32_t, std::uint32_t> devices_of_contexts() {
    std::unordered_map<std::uint32_t, std::uint32_t> devices;
    for (const auto& [context, ordinal] : ordinal_of_context_)
      devices[context] = device(ordinal);
    return devices;
  }
  void take_module(const GpuRecord& record) {
    const auto module = record.as<gpu::Module>();
    const std::string_view text =
        record.text(sizeof module, std::size_t{module.name_bytes} + module.type_bytes);
    const std::size_t name = std::min<std::size_t>(module.name_bytes, text.size());
    modules_.define(module.head.id,
                    module.around,
                    text.substr(0, name),
                    text.substr(name),
                    module.head.small == 1,
                    session_);
  }
  void take_copy(const GpuRecord& record) {
    const auto copy = record.as<gpu::Copy>();
    std::uint32_t node = model::kNone;
    if ((copy.head.small & gpu::kHasGraphNode) != 0)
      node = nodes_.use(record.extension(sizeof copy, 0), process_, session_);
    const std::uint32_t on = stream_at(copy.stream);
    if (copy.head.type == gpu::Type::kMemset) {
      session_.memsets.push_back({copy.start_ns, copy.end_ns, copy.bytes, copy.head.id, on, node});
    } else {
      const auto kind =
          copy.kind <= 10 ? static_cast<model::CopyKind>(copy.kind) : model::CopyKind::kUnknown;
      session_.copies.push_back({copy.start_ns,
                                 copy.end_ns,
                                 copy.bytes,
                                 copy.head.id,
                                 on,
                                 node,
                                 kind,
                                 false,
                                 memory_kind(copy.source),
                                 memory_kind(copy.destination)});
    }
  }
  void take_graph(const gpu::GraphLaunch& graph) {
    session_.graph_launches.push_back({graph.start_ns,
                                       graph.end_ns,
                                       graph.graph,
                                       graph.graph,
                                       graph.head.id,
                                       stream_at(graph.stream),
                                       0});
  }
  void take_node(const gpu::GraphNode& node) {
    if (node.head.small == gpu::kGraphBegun) {
      nodes_.graph_made(static_cast<std::uint32_t>(node.node), node.at_ns);
    } else {
      nodes_.add({node.node, node.original, thread(node.head.id), node.at_ns, node.head.small});
    }
  }
  void take_device(const GpuRecord& record) {
    const auto wired = record.as<gpu::Device>();
    model::Device& to = session_.devices[device(wired.head.id)];
    to.name = session_.strings.intern(record.text(sizeof wired, wired.name_bytes));
    to.mig = wired.head.small != 0;
    to.uuid = session_.strings.intern(uuid_text(wired.uuid, to.mig));
    to.chip = session_.strings.intern(chip_of(wired.compute_major, wired.compute_minor));
    to.compute_major = wired.compute_major;
    to.compute_minor = wired.compute_minor;
    to.sm_count = wired.sm_count;
    to.memory_bytes = wired.memory_bytes;
    to.l2_bytes = wired.l2_bytes;
    to.sm_clock_hz = static_cast<double>(wired.sm_clock_hz);
    to.memory_bytes_per_s = static_cast<double>(wired.memory_bytes_per_s);
  }
  void take_context(const gpu::Context& context) {
    const std::uint32_t index = stream(context.head.id, context.null_stream, context.device);
    session_.streams[index].kind = model::StreamKind::kLegacyDefault;
    ordinal_of_context_[context.head.id] = context.device;
  }
  void take_stream(const gpu::Stream& from) {
    if (from.head.id >= kMostStreams)
      return;
    if (from.head.id >= streams_.size())
      streams_.resize(from.head.id + 1, model::kNone);
    streams_[from.head.id] = stream(from.context, from.stream, from.device);
  }
  void take_loss(const GpuRecord& record) {
    const auto loss = record.as<gpu::Loss>();
    const bool nothing = loss.head.id == static_cast<std::uint32_t>(gpu::LossKind::kUnavailable);
    lose(kLosses[loss.head.id < std::size(kLosses) ? loss.head.id : 0],
         loss.count,
         std::string(record.text(sizeof loss, loss.bytes)));
    unavailable_ = unavailable_ || nothing;
  }
  void take_info(const GpuRecord& record) {
    const auto info = record.as<gpu::Info>();
    const std::string_view text = record.text(sizeof info, info.bytes);
    const std::size_t zero = text.find('\0');
    if (zero == std::string_view::npos)
      return;
    infos_[std::string(text.substr(0, zero))] = std::string(text.substr(zero + 1));
  }
  /// Of a stretch of the process's life alone.
  template <class Item>
  [[nodiscard]] bool outside_window(const Item& item) const {
    return session_.is_window() &&
           (item.end_ns <= session_.begin_ns || item.start_ns >= session_.end_ns);
  }

  void correct_clock() {
    if (info("clock") != "offset" || clock_.empty()) {
      if (session_.clock.gpu.empty())
        session_.clock.gpu = "cupti timestamp callback";
      return;
    }
    session_.clock.gpu = clock_.describe();
    const auto correct = [this](auto& items, std::size_t from) {
      for (std::size_t i = from; i < items.size(); ++i) {
        // Moved as a whole: how long it took is CUPTI's own number.
        const std::int64_t moved = clock_.correct(items[i].start_ns) - items[i].start_ns;
        items[i].start_ns += moved;
        if (items[i].end_ns != model::kOpen)
          items[i].end_ns += moved;
      }
    };
    correct(session_.kernels, first_.kernels);
    correct(session_.copies, first_.copies);
    correct(session_.memsets, first_.memsets);
    correct(session_.graph_launches, first_.graphs);
    if (info("launch_records") == "callback")
      return;
    std::vector<model::Launch> correct_calls;
    for (const std::uint32_t launch : own_clock_calls_) {
      correct_calls.push_back(session_.launches[launch]);
    }
    correct(session_.launches, first_.launches);
    for (std::size_t i = 0; i < correct_calls.size(); ++i) {
      session_.launches[own_clock_calls_[i]] = correct_calls[i];
    }
  }

  // What CUPTI's worker delivered late, and what was timed by another clock.
  void drop_impossible() {
    RecordedTime recorded;
    recorded.begin_ns = start_ns_ - kClockError_ns;
    const std::string ended_ns = info("ended_ns");
    if (!ended_ns.empty()) {
      recorded.end_ns = std::strtoll(ended_ns.c_str(), nullptr, 10) + kClockError_ns;
    }
    const FirstWork first{first_.kernels, first_.copies, first_.memsets, first_.graphs};
    drop_impossible_work(session_, first, recorded, where_ + ": ");
  }

  // Kernel to call by correlation, within this process. Sorted once: O(n log n), O(n) where one
  // thread launched.
  void link_launches() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> calls;  // correlation, index
    calls.reserve(session_.launches.size() - first_.launches);
    for (std::size_t i = first_.launches; i < session_.launches.size(); ++i)
      calls.emplace_back(session_.launches[i].correlation, static_cast<std::uint32_t>(i));
    if (!std::ranges::is_sorted(calls))
      std::ranges::sort(calls);
    std::uint64_t orphans = 0;
    const auto link = [&](auto& items, std::size_t from) {
      auto hint = calls.begin();
      for (std::size_t i = from; i < items.size(); ++i) {
        const std::uint32_t correlation = items[i].launch;
        if (hint == calls.end() || hint->first > correlation)
          hint = calls.begin();
        if (hint != calls.end() && hint->first != correlation) {
          const auto next = hint + 1;
          hint = next != calls.end() && next->first == correlation
                     ? next
                     : std::lower_bound(hint, calls.end(), std::pair{correlation, 0u});
        }
        const bool found = hint != calls.end() && hint->first == correlation;
        // CUPTI starts its numbers again after its timeline was off (13.0 on an H200): the latest
        // call before the work is meant.
        for (auto next = hint; found && ++next != calls.end() && next->first == correlation &&
                               session_.launches[next->second].start_ns <= items[i].start_ns;)
          hint = next;
        items[i].launch = found ? hint->second : model::kNone;
        if (!found && !outside_window(items[i]))
          ++orphans;
      }
    };
    link(session_.kernels, first_.kernels);
    link(session_.copies, first_.copies);
    link(session_.memsets, first_.memsets);
    link(session_.graph_launches, first_.graphs);
    if (orphans > 0) {
      lose("gpu_work_without_call",
           orphans,
           "kernels or copies whose launching call was not recorded: they are outside every range");
    }
  }

  // The stream is that of the whole run: what belongs to other windows goes. What was under way at
  // an edge is cut there.
  void cut_to_window() {
    const auto outside = [this](const auto& item) { return outside_window(item); };
    std::vector<std::uint32_t> places(session_.launches.size() - first_.launches, model::kNone);
    std::size_t kept = first_.launches;
    for (std::size_t i = first_.launches; i < session_.launches.size(); ++i) {
      const std::int64_t start_ns = session_.launches[i].start_ns;
      if (start_ns < session_.begin_ns || start_ns >= session_.end_ns)
        continue;
      places[i - first_.launches] = static_cast<std::uint32_t>(kept);
      session_.launches[kept++] = session_.launches[i];
    }
    session_.launches.resize(kept);
    modules_.moved(first_.launches, places);
    details_.moved(first_.launches, places);
    const auto cut = [&](auto& items, std::size_t from) {
      const auto begin = items.begin() + static_cast<std::ptrdiff_t>(from);
      items.erase(std::remove_if(begin, items.end(), outside), items.end());
      for (std::size_t i = from; i < items.size(); ++i) {
        if (items[i].launch != model::kNone)
          items[i].launch = places[items[i].launch - first_.launches];
        items[i].start_ns = std::max(items[i].start_ns, session_.begin_ns);
        items[i].end_ns = std::min(items[i].end_ns, session_.end_ns);
      }
    };
    cut(session_.kernels, first_.kernels);
    cut(session_.copies, first_.copies);
    cut(session_.memsets, first_.memsets);
    cut(session_.graph_launches, first_.graphs);
    std::erase_if(session_.gpu_pauses, [&](const model::GpuPause& pause) {
      return pause.process == process_ && outside(pause);
    });
    for (model::GpuPause& pause : session_.gpu_pauses) {
      pause.start_ns = std::max(pause.start_ns, session_.begin_ns);
      pause.end_ns = std::min(pause.end_ns, session_.end_ns);
    }
  }

  // A call that waits is recorded as a call, in newer captures with the stream. While the timeline
  // is paused for counters, it is they who wait.
  void add_synchronizations() {
    const auto paused = [this](std::int64_t at) {
      return std::ranges::any_of(session_.gpu_pauses, [&](const model::GpuPause& pause) {
        return pause.process == process_ && pause.start_ns <= at && at < pause.end_ns;
      });
    };
    for (std::size_t i = first_.launches; i < session_.launches.size(); ++i) {
      const model::Launch& call = session_.launches[i];
      if (call.kind != model::LaunchKind::kSynchronize || call.end_ns == model::kOpen ||
          paused(call.start_ns))
        continue;
      const auto launch = static_cast<std::uint32_t>(i);
      session_.synchronizations.push_back({call.start_ns,
                                           call.end_ns,
                                           launch,
                                           details_.awaited_stream(launch),
                                           sync_kind(session_.strings.view(call.name))});
    }
  }

  static constexpr std::uint32_t kMostStreams = 1u << 22, kMostKinds = 1u << 28;

  std::uint32_t process_;
  model::Session& session_;
  Index index_;
  CounterReader counters_;
  PcReader pc_;
  CallDetails details_;
  std::vector<std::uint32_t> own_clock_calls_;  ///< never timed by CUPTI's clock
  std::unordered_map<std::uint32_t, std::uint32_t> ordinal_of_context_;
  std::int64_t start_ns_ = 0;
  std::string where_;
  Counts first_;
  GpuClock clock_;
  GraphNodes nodes_;
  ModuleCalls modules_;
  std::unordered_map<std::uint32_t, std::uint32_t>
      name_of_;  // the file's number -> Session::kernel_names
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stream_of_;
  std::vector<std::uint32_t> streams_;  // the file's index -> Session::streams
  std::vector<KernelKind> kinds_;
  std::array<std::pair<model::StringId, model::LaunchKind>, 256> apis_{};
  std::map<std::string, std::string> infos_;
  std::uint64_t undefined_ = 0;
  bool unavailable_ = false;
};

}  // namespace

std::optional<GpuStreamHead> gpu_stream_head(std::span<const std::byte> file) {
  gpu::FileHeader header{};
  if (file.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  if (!std::equal(std::begin(header.magic), std::end(header.magic), std::begin(gpu::kMagic)))
    return std::nullopt;
  return GpuStreamHead{header.pid, header.start_ns, header.start_unix_ns};
}

base::Result<std::string> read_gpu(std::span<const std::byte> file,
                                   const std::string& where,
                                   std::uint32_t process,
                                   model::Session& session) {
  if (!gpu_stream_head(file))
    return base::fail(base::Code::kBadData, "not a GPU stream of rangescope", where + ":0");
  gpu::FileHeader header{};
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version > gpu::kVersion) {
    return base::fail(
        base::Code::kBadData,
        fmt::format(
            "GPU stream of version {}; this program reads up to {}", header.version, gpu::kVersion),
        where + ":8",
        "Read it with the rangescope that wrote it, or a newer one");
  }
  GpuReader reader(process, session, where);
  reader.set_start(header.start_ns);
  reader.finish(visit_gpu_records(file,
                                  std::max<std::size_t>(header.header_bytes, sizeof header),
                                  [&reader](const GpuRecord& record) { reader.take(record); }));
  return reader.info(gpu::kMemoryKey);
}

namespace {

namespace fs = std::filesystem;

// The driver loads the library when CUDA starts, long after the image began; an exec in the same
// pid begins a new image. Of windows it is that of the whole run, and older than these processes.
std::uint32_t process_of(const GpuStreamHead& head, model::Session& session) {
  std::uint32_t best = model::kNone;
  for (std::uint32_t i = 0; i < session.processes.size(); ++i) {
    const model::Process& process = session.processes[i];
    if (process.pid != head.pid || (process.start_ns > head.start_ns && session.windows.empty()))
      continue;
    if (best == model::kNone || process.start_ns >= session.processes[best].start_ns)
      best = i;
  }
  if (best == model::kNone) {
    best = static_cast<std::uint32_t>(session.processes.size());
    const std::int64_t start_ns =
        std::max(head.start_ns, session.begin_ns);  // of a process that ran already
    session.processes.push_back({head.pid, 0, 0, start_ns, start_ns});
  }
  return best;
}

void lose(model::Session& session, const fs::path& path, const std::string& why) {
  session.losses.push_back({"unreadable_gpu_stream", 1, path.string() + ": " + why});
}

}  // namespace

void read_gpu_files(const fs::path& folder,
                    const std::set<std::uint32_t>& left_out,
                    model::Session& session) {
  const std::vector<fs::path> streams = entries_in(folder, gpu::kSuffix);
  std::uintmax_t bytes = 0;  // a kernel and its launch take 48 of them
  for (const fs::path& path : streams) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    if (!error)
      bytes += size;
  }
  const std::uintmax_t kernels = std::min<std::uintmax_t>(bytes / 48, std::uintmax_t{1} << 25);
  session.kernels.reserve(kernels);
  session.launches.reserve(kernels);
  for (const fs::path& path : streams) {
    const auto mapping = base::Mapping::open(path);
    if (!mapping) {
      lose(session, path, mapping.error().what);
      continue;
    }
    const auto head = gpu_stream_head(mapping->bytes());
    if (!head) {
      lose(session, path, "not a GPU stream of rangescope");
      continue;
    }
    if (left_out.count(head->pid) > 0)
      continue;
    const std::uint32_t process = process_of(*head, session);
    const auto memory_state =
        read_gpu(mapping->bytes(), path.filename().string(), process, session);
    if (memory_state)
      read_memory_file(path, *head, *memory_state, process, session);
    else
      lose(session, path, memory_state.error().what);
  }
}

}  // namespace rangescope::read::native
