#include "report/formats/tables/tables.hpp"

#include <fmt/format.h>
#include <cmath>

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

/// Appends values to a row. An empty optional, NaN and a string_view without data (a missing name)
/// are NULL.
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
      if (value)
        add(*value);
      else
        rows_.null();
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      const std::string_view text(value);
      if (text.data() != nullptr)
        rows_.text(text);
      else
        rows_.null();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value))
        rows_.null();
      else
        rows_.real(value);
    } else {
      rows_.integer(static_cast<std::int64_t>(value));
    }
  }
  Rows& rows_;
};

/// An end; nothing for a range or call that did not end.
std::optional<std::int64_t> end_or_null(std::int64_t at_ns) {
  if (at_ns == model::kOpen)
    return std::nullopt;
  return at_ns;
}
std::string dimensions(const std::array<std::uint32_t, 3>& size) {
  return fmt::format("{}x{}x{}", size[0], size[1], size[2]);
}

/// "id integer, name text, share real"
std::vector<TableColumn> columns_of(std::string_view declarations) {
  std::vector<TableColumn> columns;
  for (const std::string_view declaration : base::split(declarations, ',')) {
    const std::string_view trimmed = base::trim(declaration);
    const auto space = trimmed.find(' ');
    const std::string_view type = trimmed.substr(space + 1);
    TableColumn& column = columns.emplace_back();
    column.name = trimmed.substr(0, space);
    column.type = TableColumn::kText;
    if (type == "integer")
      column.type = TableColumn::kInteger;
    if (type == "real")
      column.type = TableColumn::kReal;
  }
  return columns;
}

/// A field of what a pointer points to; nothing for null.
template <class T, class Field>
std::optional<Field> field_of(const T* object, Field T::*field) {
  if (object == nullptr)
    return std::nullopt;
  return object->*field;
}

class Writer {
 public:
  Writer(const Input& input, Store& store, bool is_wanted)
      : report_(input.report),
        session_(input.session),
        places_(input.places),
        store_(store),
        is_wanted_(is_wanted) {}

  base::Result<void> run() {
    std::vector<std::pair<std::string_view, std::string>> facts = {{"id", report_.run.id},
                                                                   {"tool", report_.run.tool}};
    facts.emplace_back("duration_ns", fmt::format("{:.0f}", report_.run.duration_ns));
    facts.emplace_back("start_unix_ns", std::to_string(report_.run.start_unix_ns));
    const model::Clock& clock = session_.clock;
    if (clock.anchor_unix_ns != 0)
      facts.emplace_back("utc_ns", std::to_string(clock.anchor_unix_ns - clock.anchor_ns));
    double offset_ns = 0;
    if (report_.ranks.size() == 1)
      offset_ns = report_.ranks.front().clock_offset_ns;
    if (offset_ns != 0)
      facts.emplace_back("clock_offset_ns", fmt::format("{:.0f}", offset_ns));
    facts.emplace_back("sources", base::join(report_.run.sources, "; "));
    std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
    return fill("run", "key text, value text", facts, [](Put& put, std::size_t, const auto& fact) {
      put(fact.first, fact.second);
    });
  }

  base::Result<void> regions() {
    std::string columns =
        "id integer, parent integer, path text, name text, domain text, kind text, depth integer, "
        "pid "
        "integer, tid integer";
    for (const model::Measure& measure : model::measures()) {
      const char* type = measure.unit == model::Unit::kCount ? " integer" : " real";
      columns += ", " + column_of(measure.tag) + type;
    }
    return fill("regions",
                columns,
                report_.regions,
                [&](Put& put, std::size_t, const model::Region& region) {
                  put(region.id,
                      indexed(region.parent),
                      base::join(region.path, " > "),
                      region.path.empty() ? std::string{} : region.path.back(),
                      region.domain,
                      model::range_kind_text(region.kind),
                      region.depth,
                      pid_of(report_, region.process),
                      region.thread);
                  for (const model::Measure& measure : model::measures()) {
                    const auto value = measure.get(region);
                    if (value && measure.unit == model::Unit::kCount)
                      put(static_cast<std::int64_t>(*value));
                    else
                      put(value);
                  }
                });
  }

  base::Result<void> region_kernels() {
    std::vector<std::pair<std::uint32_t, const model::KernelRow*>> rows;
    for (const model::Region& region : report_.regions) {
      if (!region.gpu)
        continue;
      for (const model::KernelRow& kernel : region.gpu->top_kernels)
        rows.emplace_back(region.id, &kernel);
    }
    return fill("region_kernels",
                "region integer, name text, calls integer, total_ns real, share real",
                rows,
                [](Put& put, std::size_t, const auto& row) {
                  const auto& [region, kernel] = row;
                  put(region, kernel->name, kernel->calls, kernel->total_ns, kernel->share);
                });
  }

  base::Result<void> metrics() {
    struct Row {
      const model::Region* region;
      const model::KernelMetrics* kernel;
      const std::string* name;
      const model::Metric* metric;
    };
    std::vector<Row> rows;
    const auto add =
        [&](const model::Region* region, const model::KernelMetrics* kernel, const auto& metrics) {
          for (const auto& [name, metric] : metrics)
            rows.push_back({region, kernel, &name, &metric});
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
        rows,
        [](Put& put, std::size_t, const Row& row) {
          const model::Metric& metric = *row.metric;
          put(field_of(row.region, &model::Region::id),
              field_of(row.kernel, &model::KernelMetrics::name),
              field_of(row.kernel, &model::KernelMetrics::ordinal),
              *row.name);
          std::optional<double> mean, min, max;
          std::optional<std::string> reason;
          if (metric.absent.empty()) {
            mean = metric.value;
            min = metric.min;
            max = metric.max;
          } else {
            reason = metric.absent;
          }
          put(mean, min, max);
          put(metric.unit, metric.rounds, metric.source);
          put(reason);
        });
  }

  base::Result<void> operators() {
    return fill(
        "operators",
        "name text, shapes text, calls integer, cpu_ns real, exclusive_cpu_ns real, gpu_ns real, "
        "exclusive_gpu_ns real",
        report_.operators_by_shape.empty() ? report_.operators : report_.operators_by_shape,
        [](Put& put, std::size_t, const model::OperatorRow& row) {
          put(row.name,
              row.shapes,
              row.calls,
              row.cpu_ns,
              row.exclusive_cpu_ns,
              row.gpu_ns,
              row.exclusive_gpu_ns);
        });
  }

  base::Result<void> verdict() {
    return fill("verdict",
                "kind text, severity text, path text, region integer, text text, saves_ns real, "
                "saves_share real, next text, saves_low_ns real, saves_high_ns real, cure text",
                report_.verdict,
                [](Put& put, std::size_t, const model::Verdict& verdict) {
                  put(verdict.kind,
                      model::weight_name(verdict.severity),
                      verdict.path,
                      verdict.region,
                      verdict.text,
                      verdict.saves_ns,
                      verdict.saves_share,
                      verdict.next,
                      verdict.saves_low_ns,
                      verdict.saves_high_ns,
                      verdict.cure);
                });
  }

  base::Result<void> memory() {
    constexpr std::string_view kColumns =
        "id integer, pid integer, device integer, allocator text, sizes text, "
        "allocations integer, older_bytes real, end_bytes real, peak_bytes real, "
        "peak_at_ns real, peak_reserved_bytes real, steps integer, owned_share real, "
        "growth_bytes_per_step real, failed_bytes real, failed_owner text";
    const auto row = [&](Put& put, std::size_t id, const model::DeviceMemory& memory) {
      put(id, pid_of(report_, memory.process), memory.device, memory.allocator, memory.sizes);
      put(memory.allocations, memory.older_bytes, memory.end_bytes, memory.peak_bytes);
      put(memory.peak_at_ns, memory.peak_reserved_bytes, memory.steps, memory.owned_share);
      std::optional<double> growth, failed;
      std::string_view owner;
      if (memory.growth)
        growth = memory.growth->bytes_per_step;
      if (memory.failure)
        failed = memory.failure->asked_bytes;
      if (memory.failure)
        owner = memory.failure->owner;
      put(growth, failed, owner);
    };
    return fill("memory", kColumns, report_.memory, row);
  }

  base::Result<void> memory_parts() {
    std::vector<std::pair<std::size_t, const model::MemoryPart*>> parts;
    for (std::size_t id = 0; id < report_.memory.size(); ++id)
      for (const model::MemoryPart& part : report_.memory[id].parts)
        parts.emplace_back(id, &part);
    constexpr auto kColumns = "memory integer, use text, owner text, bytes real, blocks integer";
    return fill("memory_parts", kColumns, parts, [](Put& put, std::size_t, const auto& entry) {
      const model::MemoryPart& part = *entry.second;
      std::string_view owner;
      if (!part.owner.empty())
        owner = part.owner;
      put(entry.first, model::memory_use_name(part.use), owner, part.bytes, part.blocks);
    });
  }

  base::Result<void> memory_points() {
    std::vector<std::pair<std::size_t, const model::MemoryPoint*>> points;
    for (std::size_t id = 0; id < report_.memory.size(); ++id)
      for (const auto& point : report_.memory[id].points)
        points.emplace_back(id, &point);
    constexpr auto kColumns =
        "memory integer, at_ns real, allocated_bytes real, reserved_bytes "
        "real";
    return fill("memory_points", kColumns, points, [](Put& put, std::size_t, const auto& entry) {
      const model::MemoryPoint& point = *entry.second;
      put(entry.first, point.at_ns, point.allocated_bytes, point.reserved_bytes);
    });
  }

  base::Result<void> losses() {
    return fill("losses",
                "kind text, severity text, count integer, detail text",
                report_.losses,
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
        session_.ranges,
        [&](Put& put, std::size_t i, const model::Range& range) {
          const model::Domain* domain = find(session_.domains, range.domain);
          const model::Attributes* attributes = find(session_.attributes, range.attributes);
          std::string_view domain_name;
          if (domain != nullptr)
            domain_name = text_of(domain->name);
          put(i,
              text_of(range.name),
              domain_name,
              model::range_kind_text(range.kind),
              range.start_ns,
              end_or_null(range.end_ns),
              thread_pid(range.thread),
              tid_of(range.thread),
              tid_of(range.end_thread));
          std::optional<std::uint32_t> category, color;
          std::optional<double> payload;
          if (attributes != nullptr) {
            category = attributes->category;
            if (attributes->has_color)
              color = attributes->color_argb;
            if (attributes->payload_type != model::PayloadType::kAbsent)
              payload = attributes->payload();
          }
          put(category, color, payload);
        });
  }

  base::Result<void> launches() {
    constexpr const char* kKinds[] = {"kernel", "copy", "memset", "graph", "synchronize", "other"};
    return large("launches",
                 "id integer, name text, kind text, start_ns integer, end_ns integer, pid integer, "
                 "tid integer, "
                 "correlation integer",
                 session_.launches,
                 [&](Put& put, std::size_t i, const model::Launch& launch) {
                   put(i,
                       text_of(launch.name),
                       kKinds[static_cast<std::size_t>(launch.kind)],
                       launch.start_ns,
                       end_or_null(launch.end_ns),
                       thread_pid(launch.thread),
                       tid_of(launch.thread),
                       launch.correlation);
                 });
  }

  base::Result<void> kernels() {
    return large("kernels",
                 "id integer, name text, short_name text, start_ns integer, end_ns integer, "
                 "duration_ns integer, pid "
                 "integer, device integer, context integer, stream integer, launch integer, grid "
                 "text, block text, "
                 "registers integer, shared_bytes integer, place integer",
                 session_.kernels,
                 [&](Put& put, std::size_t i, const model::Kernel& kernel) {
                   const model::KernelName* name = find(session_.kernel_names, kernel.name);
                   const model::KernelShape* shape = find(session_.kernel_shapes, kernel.shape);
                   put(i,
                       text_of(name != nullptr ? name->demangled : model::StringId{}),
                       text_of(name != nullptr ? name->short_name : model::StringId{}),
                       kernel.start_ns,
                       kernel.end_ns,
                       kernel.end_ns - kernel.start_ns);
                   stream(put, kernel.stream, true);
                   put(indexed(kernel.launch));
                   put_shape(put, shape);
                   const bool has_place = i < places_.of_kernel.size();
                   put(indexed(has_place ? places_.of_kernel[i] : kNone));
                 });
  }

  base::Result<void> places() {
    return fill("places",
                "place integer, region integer, innermost integer",
                places_.holders,
                [](Put& put, std::size_t, const auto& holder) {
                  put(holder.place, holder.region, holder.innermost);
                });
  }

  /// A row for each value: amounts of the sample, shares 0..1.
  base::Result<void> samples() {
    struct Row {
      const SampleTrack* track;
      std::size_t sample;
    };
    std::vector<SampleTrack> tracks;
    if (is_wanted_)
      tracks = sample_tracks(report_, session_);
    std::vector<Row> rows;
    for (const SampleTrack& track : tracks) {
      for (std::size_t i = 0; i < track.stream->start_ns.size(); ++i)
        rows.push_back({&track, i});
    }
    return fill("samples",
                "device integer, uuid text, source text, metric text, unit text, start_ns integer, "
                "end_ns integer, "
                "value real",
                rows,
                [&](Put& put, std::size_t, const Row& row) {
                  const SampleTrack& track = *row.track;
                  const model::SampleStream& stream = *track.stream;
                  put(ordinal_of(stream.device), stream.uuid, stream.source);
                  put(track.metric->name, track.metric->unit);
                  put(stream.start_ns[row.sample] + track.offset_ns);
                  put(stream.end_ns[row.sample] + track.offset_ns);
                  put(track.metric->values[row.sample]);
                });
  }

  base::Result<void> copies() {
    return large("copies",
                 "id integer, kind integer, bytes integer, start_ns integer, end_ns integer, pid "
                 "integer, device "
                 "integer, stream integer, launch integer, source text, destination text",
                 session_.copies,
                 [&](Put& put, std::size_t i, const model::Copy& copy) {
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
      if (event.pool != 0)
        pool = event.pool;
      put(event.address, pool);
    };
    return large("memory_events",
                 "id integer, operation text, kind text, bytes integer, at_ns integer, "
                 "pid integer, tid integer, device integer, stream integer, launch integer, "
                 "address integer, pool integer",
                 session_.memory_events,
                 row);
  }

  base::Result<void> event_calls() {
    constexpr const char* kOperations[] = {"record", "stream wait", "synchronize"};
    const auto row = [&](Put& put, std::size_t, const model::EventCall& call) {
      std::uint32_t thread = kNone;
      if (call.launch < session_.launches.size())
        thread = session_.launches[call.launch].thread;
      put(indexed(call.launch), kOperations[static_cast<std::size_t>(call.operation)]);
      put(call.event, thread_pid(thread), stream_id(call.stream));
    };
    constexpr std::string_view kColumns =
        "launch integer, operation text, event integer, pid integer, stream integer";
    return large("event_calls", kColumns, session_.event_calls, row);
  }

  base::Result<void> cpu_samples() {
    return large(
        "cpu_samples",
        "id integer, at_ns integer, pid integer, tid integer, thread text, frame integer",
        session_.cpu.samples,
        [&](Put& put, std::size_t i, const model::CpuSample& sample) {
          const model::CpuThread& thread = session_.cpu.threads[sample.thread];
          put(i, sample.at_ns, thread.pid, thread.tid, text_of(thread.name), indexed(sample.stack));
        });
  }

  base::Result<void> cpu_waits() {
    return large("cpu_waits",
                 "id integer, kind text, start_ns integer, end_ns integer, pid integer, tid "
                 "integer, frame integer",
                 session_.cpu.waits,
                 [&](Put& put, std::size_t i, const model::CpuWait& wait) {
                   const model::CpuThread& thread = session_.cpu.threads[wait.thread];
                   put(i,
                       wait.kind == model::WaitKind::kIo ? "io" : name_of(wait.kind),
                       wait.start_ns,
                       wait.end_ns,
                       thread.pid,
                       thread.tid,
                       indexed(wait.stack));
                 });
  }

  base::Result<void> cpu_counts() {
    return large("cpu_counts",
                 "counter text, at_ns integer, pid integer, tid integer, events real",
                 session_.cpu.counts,
                 [&](Put& put, std::size_t, const model::CpuCount& count) {
                   const model::CpuCounter& counter = session_.cpu.counters[count.counter];
                   const model::CpuThread& thread = session_.cpu.threads[count.thread];
                   put(text_of(counter.name), count.at_ns, thread.pid, thread.tid, counter.weight);
                 });
  }

  base::Result<void> frames() {
    constexpr const char* kKinds[] = {"native", "python", "cut"};
    return large(
        "frames",
        "id integer, parent integer, kind text, name text, file text, line integer, module text",
        session_.cpu.stacks,
        [&](Put& put, std::size_t i, const auto& stack) {
          const model::CpuFrame& frame = session_.cpu.frames[stack.frame];
          const auto text = [&](model::StringId id) {
            return id == 0 ? std::string_view() : text_of(id);
          };
          put(i,
              indexed(stack.parent),
              kKinds[static_cast<std::size_t>(frame.kind)],
              text(frame.name),
              text(frame.file),
              frame.line == 0 ? std::nullopt : std::optional(frame.line),
              text(frame.module));
        });
  }

 private:
  [[nodiscard]] std::string_view text_of(model::StringId id) const {
    return session_.strings.view(id);
  }

  /// Null for an index that the recording does not have.
  template <class T>
  static const T* find(const std::vector<T>& items, std::uint32_t index) {
    return index < items.size() ? &items[index] : nullptr;
  }
  [[nodiscard]] std::optional<std::uint32_t> process_pid(std::uint32_t index) const {
    return field_of(find(session_.processes, index), &model::Process::pid);
  }
  [[nodiscard]] std::optional<std::uint32_t> thread_pid(std::uint32_t index) const {
    const model::Thread* thread = find(session_.threads, index);
    if (thread == nullptr)
      return std::nullopt;
    return process_pid(thread->process);
  }
  [[nodiscard]] std::optional<std::int64_t> tid_of(std::uint32_t index) const {
    const model::Thread* thread = find(session_.threads, index);
    if (thread == nullptr)
      return std::nullopt;
    return static_cast<std::int64_t>(thread->tid);
  }
  [[nodiscard]] std::optional<std::uint32_t> ordinal_of(std::uint32_t index) const {
    return field_of(find(session_.devices, index), &model::Device::ordinal);
  }
  [[nodiscard]] std::optional<std::uint32_t> stream_id(std::uint32_t index) const {
    return field_of(find(session_.streams, index), &model::Stream::id);
  }

  void stream(Put& put, std::uint32_t index, bool with_context) const {
    const model::Stream* stream = find(session_.streams, index);
    const std::uint32_t process = field_of(stream, &model::Stream::process).value_or(kNone);
    const std::uint32_t device = field_of(stream, &model::Stream::device).value_or(kNone);
    put(process_pid(process));
    put(ordinal_of(device));
    if (with_context)
      put(field_of(stream, &model::Stream::context));
    put(field_of(stream, &model::Stream::id));
  }

  /// Grid, block, registers, shared memory.
  static void put_shape(Put& put, const model::KernelShape* shape) {
    std::optional<std::string> grid, block;
    std::optional<std::uint64_t> registers, shared_bytes;
    if (shape != nullptr) {
      grid = dimensions(shape->grid);
      block = dimensions(shape->block);
      registers = shape->registers_per_thread;
      shared_bytes = std::uint64_t{shape->static_shared_bytes} + shape->dynamic_shared_bytes;
    }
    put(grid, block, registers, shared_bytes);
  }

  /// Writes a table with a row for each element of `list`: `row` appends its values.
  template <class List, class Row>
  base::Result<void> fill(std::string_view table,
                          std::string_view columns,
                          const List& list,
                          Row&& row) {
    auto sink = TRY(store_.begin(table, columns_of(columns)));
    Put put(*sink);
    for (std::size_t i = 0; i < list.size(); ++i) {
      row(put, i, list[i]);
      TRY(sink->end());
    }
    return sink->finish();
  }
  /// The same for a large table, which stays empty unless it is wanted.
  template <class List, class Row>
  base::Result<void> large(std::string_view table,
                           std::string_view columns,
                           const List& list,
                           Row&& row) {
    static const List kEmpty{};
    return fill(table, columns, is_wanted_ ? list : kEmpty, std::forward<Row>(row));
  }

  const model::Report& report_;
  const model::Session& session_;
  const model::Places& places_;
  Store& store_;
  bool is_wanted_;
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
  for (const NamedTable& table : kTables)
    names.emplace_back(table.name);
  return names;
}

base::Result<void> write_tables(const Input& input,
                                Store& store,
                                const std::function<bool(std::string_view table)>& wanted) {
  for (const NamedTable& table : kTables) {
    Writer writer(input, store, wanted(table.name));
    TRY((writer.*table.fill)());
  }
  return {};
}

}  // namespace rangescope::report::tables
