#include "report/formats/tables/tables.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/timeline/sample_tracks.hpp"

namespace rangescope::report::tables {
namespace {

using model::kNone;

std::string column_of(std::string_view tag) {
  return base::replace_all(tag, ".", "_");
}

/// One row, column by column.
class Put {
 public:
  explicit Put(Rows& rows) : rows_(rows) {}
  template <class T>
  void add(T value) {
    if constexpr (std::is_convertible_v<T, std::string_view>)
      text(value);
    else if constexpr (std::is_floating_point_v<T>)
      value == value ? rows_.real(value) : rows_.null();
    else
      rows_.integer(static_cast<std::int64_t>(value));
  }
  template <class T>
  void add(const std::optional<T>& value) {
    if (value)
      add(*value);
    else
      null();
  }
  /// An index or NULL.
  void index(std::uint32_t value) {
    if (value == kNone)
      null();
    else
      add(value);
  }
  /// A time or NULL while it is open.
  void time(std::int64_t value) {
    if (value == model::kOpen)
      null();
    else
      add(value);
  }
  void null() { rows_.null(); }
  [[nodiscard]] base::Result<void> row() { return rows_.end(); }

 private:
  /// A view of nothing is a name that nobody gave, as that of the default domain.
  void text(std::string_view value) { value.data() == nullptr ? rows_.null() : rows_.text(value); }
  Rows& rows_;
};

/// "id integer, name text, share real"
std::vector<Column> columns_of(std::string_view text) {
  std::vector<Column> columns;
  for (const std::string_view part : base::split(text, ',')) {
    const std::string_view one = base::trim(part);
    const auto space = one.find(' ');
    const std::string_view type = one.substr(space + 1);
    columns.push_back({std::string(one.substr(0, space)), type == "integer" ? Column::kInteger
                                                          : type == "real"  ? Column::kReal
                                                                            : Column::kText});
  }
  return columns;
}

class Writer {
 public:
  Writer(const Input& input, Store& store)
      : report_(input.report), s_(input.session), places_(input.places), store_(store) {}

  base::Result<void> run() {
    return fill("run", "key text, value text", [&](auto& put) -> base::Result<void> {
      const auto fact = [&](std::string_view key, const std::string& value) -> base::Result<void> {
        if (value.empty()) return {};
        put.add(key);
        put.add(value);
        return put.row();
      };
      if (auto ok = fact("id", report_.run.id); !ok) return ok;
      if (auto ok = fact("tool", report_.run.tool); !ok) return ok;
      if (auto ok = fact("duration_ns", fmt::format("{:.0f}", report_.run.duration_ns)); !ok) return ok;
      if (auto ok = fact("start_unix_ns", std::to_string(report_.run.start_unix_ns)); !ok) return ok;
      const model::Clock& clock = s_.clock;
      const bool utc = clock.anchor_unix_ns != 0;
      if (auto ok = fact("utc_ns", utc ? std::to_string(clock.anchor_unix_ns - clock.anchor_ns) : ""); !ok) return ok;
      const double offset = report_.ranks.size() == 1 ? report_.ranks.front().clock_offset_ns : 0;
      if (auto ok = fact("clock_offset_ns", offset != 0 ? fmt::format("{:.0f}", offset) : ""); !ok) return ok;
      return fact("sources", base::join(report_.run.sources, "; "));
    });
  }

  base::Result<void> regions() {
    std::string columns =
        "id integer, parent integer, path text, name text, domain text, kind text, depth integer, pid "
        "integer, tid integer";
    for (const model::Measure& measure : model::measures()) {
      columns += ", " + column_of(measure.tag) + (measure.unit == model::Unit::kCount ? " integer" : " real");
    }
    return fill("regions", columns, [&](auto& put) -> base::Result<void> {
      for (const model::Region& region : report_.regions) {
        put.add(region.id);
        put.index(region.parent);
        put.add(base::join(region.path, " > "));
        put.add(region.path.empty() ? std::string{} : region.path.back());
        put.add(region.domain);
        put.add(kind_of(region.kind));
        put.add(region.depth);
        if (region.process && *region.process < report_.processes.size())
          put.add(report_.processes[*region.process].pid);
        else
          put.null();
        put.add(region.thread);
        for (const model::Measure& measure : model::measures()) {
          const auto value = measure.get(region);
          if (value && measure.unit == model::Unit::kCount)
            put.add(static_cast<std::int64_t>(*value));
          else
            put.add(value);
        }
        if (auto ok = put.row(); !ok) return ok;
      }
      return {};
    });
  }

  base::Result<void> region_kernels() {
    return fill("region_kernels", "region integer, name text, calls integer, total_ns real, share real",
                [&](auto& put) -> base::Result<void> {
                  for (const model::Region& region : report_.regions) {
                    if (!region.gpu) continue;
                    for (const model::KernelRow& row : region.gpu->top_kernels) {
                      put.add(region.id);
                      put.add(row.name);
                      put.add(row.calls);
                      put.add(row.total_ns);
                      put.add(row.share);
                      if (auto ok = put.row(); !ok) return ok;
                    }
                  }
                  return {};
                });
  }

  base::Result<void> metrics() {
    return fill("metrics",
                "region integer, kernel text, ordinal integer, name text, value real, min real, max real, unit text, "
                "rounds integer, "
                "source text, absent text",
                [&](auto& put) -> base::Result<void> {
                  const auto add = [&](const model::Region* region, const model::KernelMetrics* kernel,
                                       const std::string& name, const model::Metric& metric) {
                    if (region != nullptr)
                      put.add(region->id);
                    else
                      put.null();
                    if (kernel != nullptr) {
                      put.add(kernel->name);
                      put.add(kernel->ordinal);
                    } else {
                      put.null();
                      put.null();
                    }
                    put.add(name);
                    for (const double value : {metric.value, metric.min, metric.max}) {
                      if (metric.absent.empty())
                        put.add(value);
                      else
                        put.null();
                    }
                    put.add(metric.unit);
                    put.add(metric.rounds);
                    put.add(metric.source);
                    if (metric.absent.empty())
                      put.null();
                    else
                      put.add(metric.absent);
                    return put.row();
                  };
                  for (const model::Region& region : report_.regions) {
                    for (const auto& [name, metric] : region.metrics) {
                      if (auto ok = add(&region, nullptr, name, metric); !ok) return ok;
                    }
                    for (const model::KernelMetrics& kernel : region.kernels) {
                      for (const auto& [name, metric] : kernel.metrics) {
                        if (auto ok = add(&region, &kernel, name, metric); !ok) return ok;
                      }
                    }
                  }
                  for (const model::KernelMetrics& result : report_.unattributed_results) {
                    for (const auto& [name, metric] : result.metrics) {
                      if (auto ok = add(nullptr, &result, name, metric); !ok) return ok;
                    }
                  }
                  return {};
                });
  }

  base::Result<void> operators() {
    return fill("operators",
                "name text, shapes text, calls integer, cpu_ns real, exclusive_cpu_ns real, gpu_ns real, "
                "exclusive_gpu_ns real",
                [&](auto& put) -> base::Result<void> {
                  const auto& rows =
                      report_.operators_by_shape.empty() ? report_.operators : report_.operators_by_shape;
                  for (const model::OperatorRow& row : rows) {
                    put.add(row.name);
                    put.add(row.shapes);
                    put.add(row.calls);
                    for (const double ns : {row.cpu_ns, row.exclusive_cpu_ns, row.gpu_ns, row.exclusive_gpu_ns})
                      put.add(ns);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> verdict() {
    return fill(
        "verdict",
        "kind text, severity text, path text, region integer, text text, saves_ns real, saves_share real, next text",
        [&](auto& put) -> base::Result<void> {
          for (const model::Verdict& one : report_.verdict) {
            put.add(one.kind);
            put.add(model::weight_name(one.severity));
            put.add(one.path);
            put.add(one.region);
            put.add(one.text);
            put.add(one.saves_ns);
            put.add(one.saves_share);
            put.add(one.next);
            if (auto ok = put.row(); !ok) return ok;
          }
          return {};
        });
  }

  base::Result<void> losses() {
    return fill("losses", "kind text, severity text, count integer, detail text", [&](auto& put) -> base::Result<void> {
      for (const model::Loss& loss : report_.losses) {
        put.add(loss.kind.id());
        put.add(model::severity_name(loss.severity));
        put.add(loss.count);
        put.add(loss.detail);
        if (auto ok = put.row(); !ok) return ok;
      }
      return {};
    });
  }

  base::Result<void> ranges(bool wanted) {
    return fill(
        "ranges",
        "id integer, name text, domain text, kind text, start_ns integer, end_ns integer, pid integer, tid "
        "integer, "
        "end_tid integer, category integer, color integer, payload real",
        [&](auto& put) -> base::Result<void> {
          for (std::size_t i = 0; wanted && i < s_.ranges.size(); ++i) {
            const model::Range& range = s_.ranges[i];
            put.add(i);
            put.add(s_.strings.view(range.name));
            const model::Domain* domain = at(s_.domains, range.domain);
            domain != nullptr ? put.add(s_.strings.view(domain->name)) : put.null();
            put.add(kind_of(range.kind));
            put.add(range.start_ns);
            put.time(range.end_ns);
            thread(put, range.thread);
            const model::Thread* end = at(s_.threads, range.end_thread);
            end != nullptr ? put.add(end->tid) : put.null();
            if (range.attributes == kNone) {
              for (int n = 0; n < 3; ++n) put.null();
            } else {
              const model::Attributes& more = s_.attributes[range.attributes];
              put.add(more.category);
              put.add(more.has_color ? std::optional(more.color_argb) : std::nullopt);
              put.add(more.payload_type == model::PayloadType::kAbsent ? std::nullopt : std::optional(more.payload()));
            }
            if (auto ok = put.row(); !ok) return ok;
          }
          return {};
        });
  }

  base::Result<void> launches(bool wanted) {
    constexpr const char* kKinds[] = {"kernel", "copy", "memset", "graph", "synchronize", "other"};
    return fill("launches",
                "id integer, name text, kind text, start_ns integer, end_ns integer, pid integer, tid "
                "integer, correlation integer",
                [&](auto& put) -> base::Result<void> {
                  for (std::size_t i = 0; wanted && i < s_.launches.size(); ++i) {
                    const model::Launch& launch = s_.launches[i];
                    put.add(i);
                    put.add(s_.strings.view(launch.name));
                    put.add(kKinds[static_cast<std::size_t>(launch.kind)]);
                    put.add(launch.start_ns);
                    put.time(launch.end_ns);
                    thread(put, launch.thread);
                    put.add(launch.correlation);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> kernels(bool wanted) {
    return fill("kernels",
                "id integer, name text, short_name text, start_ns integer, end_ns integer, duration_ns "
                "integer, pid integer, "
                "device integer, context integer, stream integer, launch integer, grid text, block text, registers "
                "integer, shared_bytes integer, place integer",
                [&](auto& put) -> base::Result<void> {
                  for (std::size_t i = 0; wanted && i < s_.kernels.size(); ++i) {
                    const model::Kernel& kernel = s_.kernels[i];
                    const model::KernelName* known = at(s_.kernel_names, kernel.name);
                    const model::KernelShape* launched = at(s_.kernel_shapes, kernel.shape);
                    const model::KernelName& name = known != nullptr ? *known : model::KernelName{};
                    put.add(i);
                    put.add(s_.strings.view(name.demangled));
                    put.add(s_.strings.view(name.short_name));
                    put.add(kernel.start_ns);
                    put.add(kernel.end_ns);
                    put.add(kernel.end_ns - kernel.start_ns);
                    stream(put, kernel.stream, true);
                    put.index(kernel.launch);
                    if (launched == nullptr) {
                      for (int n = 0; n < 4; ++n) put.null();
                    } else {
                      put.add(fmt::format("{}x{}x{}", launched->grid[0], launched->grid[1], launched->grid[2]));
                      put.add(fmt::format("{}x{}x{}", launched->block[0], launched->block[1], launched->block[2]));
                      put.add(launched->registers_per_thread);
                      put.add(std::uint64_t{launched->static_shared_bytes} + launched->dynamic_shared_bytes);
                    }
                    put.index(i < places_.of_kernel.size() ? places_.of_kernel[i] : kNone);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> places() {
    return fill("places", "place integer, region integer, innermost integer", [&](auto& put) -> base::Result<void> {
      for (const model::Places::Holder& one : places_.holders) {
        put.add(one.place);
        put.add(one.region);
        put.add(one.innermost);
        if (auto ok = put.row(); !ok) return ok;
      }
      return {};
    });
  }

  /// A row for each value: amounts of the sample, shares 0..1.
  base::Result<void> samples(bool wanted) {
    return fill("samples",
                "device integer, uuid text, source text, metric text, unit text, start_ns integer, end_ns integer, "
                "value real",
                [&](auto& put) -> base::Result<void> {
                  if (!wanted) return {};
                  for (const SampleTrack& track : sample_tracks(report_, s_)) {
                    for (std::size_t i = 0; i < track.stream->start_ns.size(); ++i) {
                      if (track.stream->device < s_.devices.size())
                        put.add(s_.devices[track.stream->device].ordinal);
                      else
                        put.null();
                      put.add(track.stream->uuid);
                      put.add(track.stream->source);
                      put.add(track.metric->name);
                      put.add(track.metric->unit);
                      put.add(track.stream->start_ns[i] + track.offset_ns);
                      put.add(track.stream->end_ns[i] + track.offset_ns);
                      put.add(track.metric->values[i]);
                      if (auto ok = put.row(); !ok) return ok;
                    }
                  }
                  return {};
                });
  }

  base::Result<void> copies(bool wanted) {
    return fill("copies",
                "id integer, kind integer, bytes integer, start_ns integer, end_ns integer, pid integer, "
                "device integer, stream integer, "
                "launch integer",
                [&](auto& put) -> base::Result<void> {
                  for (std::size_t i = 0; wanted && i < s_.copies.size(); ++i) {
                    const model::Copy& copy = s_.copies[i];
                    put.add(i);
                    put.add(static_cast<int>(copy.kind));
                    put.add(copy.bytes);
                    put.add(copy.start_ns);
                    put.add(copy.end_ns);
                    stream(put, copy.stream, false);
                    put.index(copy.launch);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> cpu_samples(bool wanted) {
    return fill("cpu_samples", "id integer, at_ns integer, pid integer, tid integer, thread text, frame integer",
                [&](auto& put) -> base::Result<void> {
                  for (std::size_t i = 0; wanted && i < s_.cpu.samples.size(); ++i) {
                    const model::CpuSample& sample = s_.cpu.samples[i];
                    const model::CpuThread& thread = s_.cpu.threads[sample.thread];
                    put.add(i);
                    put.add(sample.at_ns);
                    put.add(thread.pid);
                    put.add(thread.tid);
                    put.add(s_.strings.view(thread.name));
                    put.index(sample.stack);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> cpu_waits(bool wanted) {
    constexpr const char* kKinds[] = {"other", "lock", "io", "sleep", "preempted"};
    return fill("cpu_waits",
                "id integer, kind text, start_ns integer, end_ns integer, pid integer, tid integer, frame integer",
                [&](auto& put) -> base::Result<void> {
                  for (std::size_t i = 0; wanted && i < s_.cpu.waits.size(); ++i) {
                    const model::CpuWait& wait = s_.cpu.waits[i];
                    put.add(i);
                    put.add(kKinds[static_cast<std::size_t>(wait.kind)]);
                    put.add(wait.start_ns);
                    put.add(wait.end_ns);
                    put.add(s_.cpu.threads[wait.thread].pid);
                    put.add(s_.cpu.threads[wait.thread].tid);
                    put.index(wait.stack);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> cpu_counts(bool wanted) {
    return fill("cpu_counts", "counter text, at_ns integer, pid integer, tid integer, events real",
                [&](auto& put) -> base::Result<void> {
                  for (std::size_t i = 0; wanted && i < s_.cpu.counts.size(); ++i) {
                    const model::CpuCount& count = s_.cpu.counts[i];
                    const model::CpuCounter& counter = s_.cpu.counters[count.counter];
                    put.add(s_.strings.view(counter.name));
                    put.add(count.at_ns);
                    put.add(s_.cpu.threads[count.thread].pid);
                    put.add(s_.cpu.threads[count.thread].tid);
                    put.add(counter.weight);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

  base::Result<void> frames(bool wanted) {
    constexpr const char* kKinds[] = {"native", "python", "cut"};
    return fill("frames", "id integer, parent integer, kind text, name text, file text, line integer, module text",
                [&](auto& put) -> base::Result<void> {
                  const auto text = [&](model::StringId id) { id == 0 ? put.null() : put.add(s_.strings.view(id)); };
                  for (std::size_t i = 0; wanted && i < s_.cpu.stacks.size(); ++i) {
                    const model::CpuFrame& frame = s_.cpu.frames[s_.cpu.stacks[i].frame];
                    put.add(i);
                    put.index(s_.cpu.stacks[i].parent);
                    put.add(kKinds[static_cast<std::size_t>(frame.kind)]);
                    text(frame.name);
                    text(frame.file);
                    if (frame.line == 0)
                      put.null();
                    else
                      put.add(frame.line);
                    text(frame.module);
                    if (auto ok = put.row(); !ok) return ok;
                  }
                  return {};
                });
  }

 private:
  static const char* kind_of(model::RangeKind kind) {
    return kind == model::RangeKind::kPushPop ? "push/pop" : "start/end";
  }

  /// Nothing for an index that the recording does not have.
  template <class T>
  static const T* at(const std::vector<T>& all, std::uint32_t index) {
    return index < all.size() ? &all[index] : nullptr;
  }
  void pid(Put& put, std::uint32_t index) {
    const model::Process* process = at(s_.processes, index);
    process != nullptr ? put.add(process->pid) : put.null();
  }
  void thread(Put& put, std::uint32_t index) {
    const model::Thread* thread = at(s_.threads, index);
    pid(put, thread != nullptr ? thread->process : kNone);
    thread != nullptr ? put.add(thread->tid) : put.null();
  }
  void stream(Put& put, std::uint32_t index, bool context) {
    const model::Stream* stream = at(s_.streams, index);
    pid(put, stream != nullptr ? stream->process : kNone);
    const model::Device* device = at(s_.devices, stream != nullptr ? stream->device : kNone);
    device != nullptr ? put.add(device->ordinal) : put.null();
    if (context) stream != nullptr ? put.add(stream->context) : put.null();
    stream != nullptr ? put.add(stream->id) : put.null();
  }

  template <class Rows>
  base::Result<void> fill(std::string_view table, std::string_view columns, Rows&& rows) {
    auto sink = store_.begin(table, columns_of(columns));
    if (!sink) return base::fail(std::move(sink));
    Put put(**sink);
    if (auto filled = rows(put); !filled) return filled;
    return (*sink)->finish();
  }

  const model::Report& report_;
  const model::Session& s_;
  const model::Places& places_;
  Store& store_;
};

struct NamedTable {
  std::string_view name;
  base::Result<void> (*fill)(Writer& writer, bool wanted);
};
constexpr NamedTable kTables[] = {
    {"run", [](Writer& w, bool) { return w.run(); }},
    {"regions", [](Writer& w, bool) { return w.regions(); }},
    {"region_kernels", [](Writer& w, bool) { return w.region_kernels(); }},
    {"metrics", [](Writer& w, bool) { return w.metrics(); }},
    {"operators", [](Writer& w, bool) { return w.operators(); }},
    {"verdict", [](Writer& w, bool) { return w.verdict(); }},
    {"losses", [](Writer& w, bool) { return w.losses(); }},
    {"ranges", [](Writer& w, bool wanted) { return w.ranges(wanted); }},
    {"launches", [](Writer& w, bool wanted) { return w.launches(wanted); }},
    {"kernels", [](Writer& w, bool wanted) { return w.kernels(wanted); }},
    {"places", [](Writer& w, bool) { return w.places(); }},
    {"copies", [](Writer& w, bool wanted) { return w.copies(wanted); }},
    {"samples", [](Writer& w, bool wanted) { return w.samples(wanted); }},
    {"cpu_samples", [](Writer& w, bool wanted) { return w.cpu_samples(wanted); }},
    {"cpu_waits", [](Writer& w, bool wanted) { return w.cpu_waits(wanted); }},
    {"cpu_counts", [](Writer& w, bool wanted) { return w.cpu_counts(wanted); }},
    {"frames", [](Writer& w, bool wanted) { return w.frames(wanted); }},
};

}  // namespace

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const NamedTable& table : kTables) names.emplace_back(table.name);
  return names;
}

base::Result<void> write_tables(const Input& input, Store& store,
                                const std::function<bool(std::string_view table)>& wanted) {
  Writer writer(input, store);
  for (const NamedTable& table : kTables)
    if (auto filled = table.fill(writer, wanted(table.name)); !filled) return filled;
  return {};
}

}  // namespace rangescope::report::tables
