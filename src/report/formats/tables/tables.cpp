#include "report/formats/tables/tables.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/view.hpp"
#include "report/timeline/timeline.hpp"

namespace rangescope::report::tables {
namespace {

using model::kNone;
using model::memory_kind_name;

std::string column_of(std::string_view tag) {
  return base::replace_all(tag, ".", "_");
}

/// The values of a row: an empty optional, NaN and a view of nothing (a name that nobody gave) are
/// NULL.
class Put {
 public:
  explicit Put(Rows& rows) : rows_(rows) {}
  template <class... Values>
  void operator()(const Values&... values) {
    (add(values), ...);
  }

 private:
  template <class T>
  void add(const T& value) {
    if constexpr (requires { value.has_value(); }) {
      value ? add(*value) : rows_.null();
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      const std::string_view text(value);
      text.data() == nullptr ? rows_.null() : rows_.text(text);
    } else if constexpr (std::is_floating_point_v<T>) {
      value == value ? rows_.real(value) : rows_.null();
    } else {
      rows_.integer(static_cast<std::int64_t>(value));
    }
  }
  Rows& rows_;
};

/// A time, nothing while it is open.
std::optional<std::int64_t> closed(std::int64_t at_ns) {
  return at_ns == model::kOpen ? std::nullopt : std::optional(at_ns);
}
std::string triple(const std::array<std::uint32_t, 3>& of) {
  return fmt::format("{}x{}x{}", of[0], of[1], of[2]);
}

/// "id integer, name text, share real"
std::vector<TableColumn> columns_of(std::string_view text) {
  std::vector<TableColumn> columns;
  for (const std::string_view part : base::split(text, ',')) {
    const std::string_view one = base::trim(part);
    const auto space = one.find(' ');
    const std::string_view type = one.substr(space + 1);
    columns.push_back({std::string(one.substr(0, space)), type == "integer" ? TableColumn::kInteger
                                                          : type == "real"  ? TableColumn::kReal
                                                                            : TableColumn::kText});
  }
  return columns;
}

class Writer {
 public:
  Writer(const Input& input, Store& store, bool wanted)
      : report_(input.report),
        s_(input.session),
        places_(input.places),
        store_(store),
        wanted_(wanted) {}

  base::Result<void> run() {
    std::vector<std::pair<std::string_view, std::string>> facts = {{"id", report_.run.id},
                                                                   {"tool", report_.run.tool}};
    facts.emplace_back("duration_ns", fmt::format("{:.0f}", report_.run.duration_ns));
    facts.emplace_back("start_unix_ns", std::to_string(report_.run.start_unix_ns));
    const model::Clock& clock = s_.clock;
    if (clock.anchor_unix_ns != 0)
      facts.emplace_back("utc_ns", std::to_string(clock.anchor_unix_ns - clock.anchor_ns));
    const double offset = report_.ranks.size() == 1 ? report_.ranks.front().clock_offset_ns : 0;
    if (offset != 0) facts.emplace_back("clock_offset_ns", fmt::format("{:.0f}", offset));
    facts.emplace_back("sources", base::join(report_.run.sources, "; "));
    std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
    return fill("run", "key text, value text", facts,
                [](Put& put, std::size_t, const auto& fact) { put(fact.first, fact.second); });
  }

  base::Result<void> regions() {
    std::string columns =
        "id integer, parent integer, path text, name text, domain text, kind text, depth integer, "
        "pid "
        "integer, tid integer";
    for (const model::Measure& measure : model::measures())
      columns += ", " + column_of(measure.tag) +
                 (measure.unit == model::Unit::kCount ? " integer" : " real");
    return fill(
        "regions", columns, report_.regions,
        [&](Put& put, std::size_t, const model::Region& region) {
          put(region.id, indexed(region.parent), base::join(region.path, " > "),
              region.path.empty() ? std::string{} : region.path.back(), region.domain,
              kind_of(region.kind), region.depth, pid_of(report_, region.process), region.thread);
          for (const model::Measure& measure : model::measures()) {
            const auto value = measure.get(region);
            value&& measure.unit == model::Unit::kCount ? put(static_cast<std::int64_t>(*value))
                                                        : put(value);
          }
        });
  }

  base::Result<void> region_kernels() {
    std::vector<std::pair<std::uint32_t, const model::KernelRow*>> list;
    for (const model::Region& region : report_.regions)
      if (region.gpu)
        for (const model::KernelRow& row : region.gpu->top_kernels)
          list.emplace_back(region.id, &row);
    return fill("region_kernels",
                "region integer, name text, calls integer, total_ns real, share real", list,
                [](Put& put, std::size_t, const auto& one) {
                  put(one.first, one.second->name, one.second->calls, one.second->total_ns,
                      one.second->share);
                });
  }

  base::Result<void> metrics() {
    struct Row {
      const model::Region* region;
      const model::KernelMetrics* kernel;
      const std::string* name;
      const model::Metric* metric;
    };
    std::vector<Row> list;
    const auto add = [&](const model::Region* region, const model::KernelMetrics* kernel,
                         const auto& metrics) {
      for (const auto& [name, metric] : metrics) list.push_back({region, kernel, &name, &metric});
    };
    for (const model::Region& region : report_.regions) {
      add(&region, nullptr, region.metrics);
      for (const model::KernelMetrics& kernel : region.kernels)
        add(&region, &kernel, kernel.metrics);
    }
    for (const model::KernelMetrics& result : report_.unattributed_results)
      add(nullptr, &result, result.metrics);
    return fill(
        "metrics",
        "region integer, kernel text, ordinal integer, name text, value real, min real, max real, "
        "unit text, "
        "rounds integer, source text, absent text",
        list, [](Put& put, std::size_t, const Row& row) {
          const model::Metric& metric = *row.metric;
          const bool there = metric.absent.empty();
          const auto value = [&](double of) { return there ? std::optional(of) : std::nullopt; };
          put(row.region != nullptr ? std::optional(row.region->id) : std::nullopt,
              row.kernel != nullptr ? std::optional(row.kernel->name) : std::nullopt,
              row.kernel != nullptr ? std::optional(row.kernel->ordinal) : std::nullopt, *row.name,
              value(metric.value), value(metric.min), value(metric.max), metric.unit, metric.rounds,
              metric.source, there ? std::nullopt : std::optional(metric.absent));
        });
  }

  base::Result<void> operators() {
    return fill(
        "operators",
        "name text, shapes text, calls integer, cpu_ns real, exclusive_cpu_ns real, gpu_ns real, "
        "exclusive_gpu_ns real",
        report_.operators_by_shape.empty() ? report_.operators : report_.operators_by_shape,
        [](Put& put, std::size_t, const model::OperatorRow& row) {
          put(row.name, row.shapes, row.calls, row.cpu_ns, row.exclusive_cpu_ns, row.gpu_ns,
              row.exclusive_gpu_ns);
        });
  }

  base::Result<void> verdict() {
    return fill("verdict",
                "kind text, severity text, path text, region integer, text text, saves_ns real, "
                "saves_share real, next text, saves_low_ns real, saves_high_ns real, cure text",
                report_.verdict, [](Put& put, std::size_t, const model::Verdict& one) {
                  put(one.kind, model::weight_name(one.severity), one.path, one.region, one.text,
                      one.saves_ns, one.saves_share, one.next, one.saves_low_ns, one.saves_high_ns,
                      one.cure);
                });
  }

  base::Result<void> memory() {
    constexpr std::string_view kColumns =
        "id integer, pid integer, device integer, allocator text, sizes text, "
        "allocations integer, older_bytes real, end_bytes real, peak_bytes real, "
        "peak_at_ns real, peak_reserved_bytes real, steps integer, owned_share real, "
        "growth_bytes_per_step real, failed_bytes real, failed_owner text";
    return fill("memory", kColumns, report_.memory, [&](Put& put, std::size_t id, const auto& of) {
      put(id, pid_of(report_, of.process), of.device, of.allocator, of.sizes);
      put(of.allocations, of.older_bytes, of.end_bytes, of.peak_bytes);
      put(of.peak_at_ns, of.peak_reserved_bytes, of.steps, of.owned_share);
      std::optional<double> growth, failed;
      std::string_view owner;
      if (of.growth) growth = of.growth->bytes_per_step;
      if (of.failure) failed = of.failure->asked_bytes;
      if (of.failure) owner = of.failure->owner;
      put(growth, failed, owner);
    });
  }

  base::Result<void> memory_parts() {
    std::vector<std::pair<std::size_t, const model::MemoryPart*>> parts;
    for (std::size_t id = 0; id < report_.memory.size(); ++id)
      for (const model::MemoryPart& part : report_.memory[id].parts) parts.emplace_back(id, &part);
    constexpr auto kColumns = "memory integer, use text, owner text, bytes real, blocks integer";
    return fill("memory_parts", kColumns, parts, [](Put& put, std::size_t, const auto& entry) {
      const model::MemoryPart& part = *entry.second;
      std::string_view owner;
      if (!part.owner.empty()) owner = part.owner;
      put(entry.first, model::memory_use_name(part.use), owner, part.bytes, part.blocks);
    });
  }

  base::Result<void> memory_points() {
    std::vector<std::pair<std::size_t, const model::MemoryPoint*>> points;
    for (std::size_t id = 0; id < report_.memory.size(); ++id)
      for (const auto& point : report_.memory[id].points) points.emplace_back(id, &point);
    constexpr auto kColumns =
        "memory integer, at_ns real, allocated_bytes real, reserved_bytes "
        "real";
    return fill("memory_points", kColumns, points, [](Put& put, std::size_t, const auto& entry) {
      const model::MemoryPoint& point = *entry.second;
      put(entry.first, point.at_ns, point.allocated_bytes, point.reserved_bytes);
    });
  }

  base::Result<void> losses() {
    return fill("losses", "kind text, severity text, count integer, detail text", report_.losses,
                [](Put& put, std::size_t, const model::Loss& loss) {
                  put(loss.kind.id(), model::severity_name(loss.severity), loss.count, loss.detail);
                });
  }

  base::Result<void> ranges() {
    return large(
        "ranges",
        "id integer, name text, domain text, kind text, start_ns integer, end_ns integer, pid "
        "integer, tid "
        "integer, end_tid integer, category integer, color integer, payload real",
        s_.ranges, [&](Put& put, std::size_t i, const model::Range& range) {
          const model::Domain* domain = at(s_.domains, range.domain);
          const model::Attributes* more = at(s_.attributes, range.attributes);
          const bool payload = more != nullptr && more->payload_type != model::PayloadType::kAbsent;
          put(i, text_of(range.name),
              domain != nullptr ? text_of(domain->name) : std::string_view(), kind_of(range.kind),
              range.start_ns, closed(range.end_ns), thread_pid(range.thread), tid_of(range.thread),
              tid_of(range.end_thread),
              more != nullptr ? std::optional(more->category) : std::nullopt,
              more != nullptr && more->has_color ? std::optional(more->color_argb) : std::nullopt,
              payload ? std::optional(more->payload()) : std::nullopt);
        });
  }

  base::Result<void> launches() {
    constexpr const char* kKinds[] = {"kernel", "copy", "memset", "graph", "synchronize", "other"};
    return large("launches",
                 "id integer, name text, kind text, start_ns integer, end_ns integer, pid integer, "
                 "tid integer, "
                 "correlation integer",
                 s_.launches, [&](Put& put, std::size_t i, const model::Launch& launch) {
                   put(i, text_of(launch.name), kKinds[static_cast<std::size_t>(launch.kind)],
                       launch.start_ns, closed(launch.end_ns), thread_pid(launch.thread),
                       tid_of(launch.thread), launch.correlation);
                 });
  }

  base::Result<void> kernels() {
    return large("kernels",
                 "id integer, name text, short_name text, start_ns integer, end_ns integer, "
                 "duration_ns integer, pid "
                 "integer, device integer, context integer, stream integer, launch integer, grid "
                 "text, block text, "
                 "registers integer, shared_bytes integer, place integer",
                 s_.kernels, [&](Put& put, std::size_t i, const model::Kernel& kernel) {
                   const model::KernelName* name = at(s_.kernel_names, kernel.name);
                   const model::KernelShape* shape = at(s_.kernel_shapes, kernel.shape);
                   put(i, text_of(name != nullptr ? name->demangled : model::StringId{}),
                       text_of(name != nullptr ? name->short_name : model::StringId{}),
                       kernel.start_ns, kernel.end_ns, kernel.end_ns - kernel.start_ns);
                   stream(put, kernel.stream, true);
                   put(indexed(kernel.launch));
                   if (shape == nullptr)
                     put(std::optional<int>(), std::optional<int>(), std::optional<int>(),
                         std::optional<int>());
                   else
                     put(triple(shape->grid), triple(shape->block), shape->registers_per_thread,
                         std::uint64_t{shape->static_shared_bytes} + shape->dynamic_shared_bytes);
                   put(indexed(i < places_.of_kernel.size() ? places_.of_kernel[i] : kNone));
                 });
  }

  base::Result<void> places() {
    return fill(
        "places", "place integer, region integer, innermost integer", places_.holders,
        [](Put& put, std::size_t, const auto& one) { put(one.place, one.region, one.innermost); });
  }

  /// A row for each value: amounts of the sample, shares 0..1.
  base::Result<void> samples() {
    struct Row {
      const SampleTrack* track;
      std::size_t at;
    };
    const std::vector<SampleTrack> tracks =
        wanted_ ? sample_tracks(report_, s_) : std::vector<SampleTrack>();
    std::vector<Row> list;
    for (const SampleTrack& track : tracks)
      for (std::size_t i = 0; i < track.stream->start_ns.size(); ++i) list.push_back({&track, i});
    return fill("samples",
                "device integer, uuid text, source text, metric text, unit text, start_ns integer, "
                "end_ns integer, "
                "value real",
                list, [&](Put& put, std::size_t, const Row& row) {
                  const SampleTrack& track = *row.track;
                  put(ordinal_of(track.stream->device), track.stream->uuid, track.stream->source);
                  put(track.metric->name, track.metric->unit);
                  put(track.stream->start_ns[row.at] + track.offset_ns);
                  put(track.stream->end_ns[row.at] + track.offset_ns, track.metric->values[row.at]);
                });
  }

  base::Result<void> copies() {
    return large("copies",
                 "id integer, kind integer, bytes integer, start_ns integer, end_ns integer, pid "
                 "integer, device "
                 "integer, stream integer, launch integer, source text, destination text",
                 s_.copies, [&](Put& put, std::size_t i, const model::Copy& copy) {
                   put(i, static_cast<int>(copy.kind), copy.bytes, copy.start_ns, copy.end_ns);
                   stream(put, copy.stream, false);
                   put(indexed(copy.launch));
                   put(memory_kind_name(copy.source), memory_kind_name(copy.destination));
                 });
  }

  base::Result<void> memory_events() {
    constexpr const char* kOperations[] = {"allocate", "free", "failed allocation"};
    const auto row = [&](Put& put, std::size_t i, const model::MemoryEvent& event) {
      put(i, kOperations[static_cast<std::size_t>(event.operation)], memory_kind_name(event.kind));
      put(event.bytes, event.at_ns, process_pid(event.process), tid_of(event.thread));
      put(ordinal_of(event.device), stream_id(event.stream), indexed(event.launch));
      std::optional<std::uint64_t> pool;
      if (event.pool != 0) pool = event.pool;
      put(event.address, pool);
    };
    return large("memory_events",
                 "id integer, operation text, kind text, bytes integer, at_ns integer, "
                 "pid integer, tid integer, device integer, stream integer, launch integer, "
                 "address integer, pool integer",
                 s_.memory_events, row);
  }

  base::Result<void> event_calls() {
    constexpr const char* kOperations[] = {"record", "stream wait", "synchronize"};
    const auto row = [&](Put& put, std::size_t, const model::EventCall& call) {
      std::uint32_t thread = kNone;
      if (call.launch < s_.launches.size()) thread = s_.launches[call.launch].thread;
      put(indexed(call.launch), kOperations[static_cast<std::size_t>(call.operation)]);
      put(call.event, thread_pid(thread), stream_id(call.stream));
    };
    constexpr std::string_view kColumns =
        "launch integer, operation text, event integer, pid integer, stream integer";
    return large("event_calls", kColumns, s_.event_calls, row);
  }

  base::Result<void> cpu_samples() {
    return large("cpu_samples",
                 "id integer, at_ns integer, pid integer, tid integer, thread text, frame integer",
                 s_.cpu.samples, [&](Put& put, std::size_t i, const model::CpuSample& sample) {
                   const model::CpuThread& thread = s_.cpu.threads[sample.thread];
                   put(i, sample.at_ns, thread.pid, thread.tid, text_of(thread.name),
                       indexed(sample.stack));
                 });
  }

  base::Result<void> cpu_waits() {
    return large("cpu_waits",
                 "id integer, kind text, start_ns integer, end_ns integer, pid integer, tid "
                 "integer, frame integer",
                 s_.cpu.waits, [&](Put& put, std::size_t i, const model::CpuWait& wait) {
                   const model::CpuThread& thread = s_.cpu.threads[wait.thread];
                   put(i, wait.kind == model::WaitKind::kIo ? "io" : name_of(wait.kind),
                       wait.start_ns, wait.end_ns, thread.pid, thread.tid, indexed(wait.stack));
                 });
  }

  base::Result<void> cpu_counts() {
    return large("cpu_counts", "counter text, at_ns integer, pid integer, tid integer, events real",
                 s_.cpu.counts, [&](Put& put, std::size_t, const model::CpuCount& count) {
                   const model::CpuCounter& counter = s_.cpu.counters[count.counter];
                   const model::CpuThread& thread = s_.cpu.threads[count.thread];
                   put(text_of(counter.name), count.at_ns, thread.pid, thread.tid, counter.weight);
                 });
  }

  base::Result<void> frames() {
    constexpr const char* kKinds[] = {"native", "python", "cut"};
    return large(
        "frames",
        "id integer, parent integer, kind text, name text, file text, line integer, module text",
        s_.cpu.stacks, [&](Put& put, std::size_t i, const auto& stack) {
          const model::CpuFrame& frame = s_.cpu.frames[stack.frame];
          const auto text = [&](model::StringId id) {
            return id == 0 ? std::string_view() : text_of(id);
          };
          put(i, indexed(stack.parent), kKinds[static_cast<std::size_t>(frame.kind)],
              text(frame.name), text(frame.file),
              frame.line == 0 ? std::nullopt : std::optional(frame.line), text(frame.module));
        });
  }

 private:
  static const char* kind_of(model::RangeKind kind) {
    return kind == model::RangeKind::kPushPop ? "push/pop" : "start/end";
  }
  [[nodiscard]] std::string_view text_of(model::StringId id) const { return s_.strings.view(id); }

  /// Nothing for an index that the recording does not have.
  template <class T>
  static const T* at(const std::vector<T>& all, std::uint32_t index) {
    return index < all.size() ? &all[index] : nullptr;
  }
  [[nodiscard]] std::optional<std::uint32_t> process_pid(std::uint32_t index) const {
    const model::Process* process = at(s_.processes, index);
    return process != nullptr ? std::optional(process->pid) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> thread_pid(std::uint32_t index) const {
    const model::Thread* thread = at(s_.threads, index);
    return process_pid(thread != nullptr ? thread->process : kNone);
  }
  [[nodiscard]] std::optional<std::int64_t> tid_of(std::uint32_t index) const {
    const model::Thread* thread = at(s_.threads, index);
    return thread != nullptr ? std::optional(static_cast<std::int64_t>(thread->tid)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> ordinal_of(std::uint32_t index) const {
    const model::Device* device = at(s_.devices, index);
    if (device == nullptr) return std::nullopt;
    return device->ordinal;
  }
  [[nodiscard]] std::optional<std::uint32_t> stream_id(std::uint32_t index) const {
    const model::Stream* found = at(s_.streams, index);
    if (found == nullptr) return std::nullopt;
    return found->id;
  }
  void stream(Put& put, std::uint32_t index, bool context) const {
    const model::Stream* stream = at(s_.streams, index);
    put(process_pid(stream != nullptr ? stream->process : kNone));
    put(ordinal_of(stream != nullptr ? stream->device : kNone));
    if (context) put(stream != nullptr ? std::optional(stream->context) : std::nullopt);
    put(stream_id(index));
  }

  /// A row for each of a list.
  template <class List, class Row>
  base::Result<void> fill(std::string_view table, std::string_view columns, const List& list,
                          Row&& row) {
    auto sink = TRY(store_.begin(table, columns_of(columns)));
    Put put(*sink);
    for (std::size_t i = 0; i < list.size(); ++i) {
      row(put, i, list[i]);
      TRY(sink->end());
    }
    return sink->finish();
  }
  /// The same of one that is empty unless it is wanted.
  template <class List, class Row>
  base::Result<void> large(std::string_view table, std::string_view columns, const List& list,
                           Row&& row) {
    static const List kEmpty{};
    return fill(table, columns, wanted_ ? list : kEmpty, std::forward<Row>(row));
  }

  const model::Report& report_;
  const model::Session& s_;
  const model::Places& places_;
  Store& store_;
  bool wanted_;
};

struct NamedTable {
  std::string_view name;
  base::Result<void> (Writer::*fill)();
};
constexpr NamedTable kTables[] = {
    {"run", &Writer::run},
    {"regions", &Writer::regions},
    {"region_kernels", &Writer::region_kernels},
    {"metrics", &Writer::metrics},
    {"operators", &Writer::operators},
    {"verdict", &Writer::verdict},
    {"losses", &Writer::losses},
    {"memory", &Writer::memory},
    {"memory_parts", &Writer::memory_parts},
    {"memory_points", &Writer::memory_points},
    {"ranges", &Writer::ranges},
    {"launches", &Writer::launches},
    {"kernels", &Writer::kernels},
    {"places", &Writer::places},
    {"copies", &Writer::copies},
    {"memory_events", &Writer::memory_events},
    {"event_calls", &Writer::event_calls},
    {"samples", &Writer::samples},
    {"cpu_samples", &Writer::cpu_samples},
    {"cpu_waits", &Writer::cpu_waits},
    {"cpu_counts", &Writer::cpu_counts},
    {"frames", &Writer::frames},
};

}  // namespace

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const NamedTable& table : kTables) names.emplace_back(table.name);
  return names;
}

base::Result<void> write_tables(const Input& input, Store& store,
                                const std::function<bool(std::string_view table)>& wanted) {
  for (const NamedTable& table : kTables) {
    Writer writer(input, store, wanted(table.name));
    TRY((writer.*table.fill)());
  }
  return {};
}

}  // namespace rangescope::report::tables
