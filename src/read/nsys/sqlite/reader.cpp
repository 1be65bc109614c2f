#include "read/nsys/sqlite/reader.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/find.hpp"
#include "base/sqlite.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"
#include "model/sample.hpp"
#include "model/session.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/parts.hpp"
#include "read/nsys/sqlite/source.hpp"
#include "read/nsys/sqlite/target.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

// GPU_METRICS: what `nsys profile --gpu-metrics-devices` sampled, a row for each metric of each
// sample.
//
//   GPU_METRICS              timestamp, typeId (its lowest byte is the GPU), metricId, value
//   TARGET_INFO_GPU_METRICS  typeId, metricId, metricName: "SMs Active [Throughput %]", "SYS Clock
//   Frequency [MHz]"
//
// A sample ends at its time stamp and begins where the one before it ended. Percentages are whole
// numbers.

struct GpuMetrics {
  Outcome outcome;
  struct Stream {
    std::int64_t gpu = 0;  ///< Gpu::id
    model::SampleStream samples;
  };
  std::vector<Stream> streams;
};

using model::SampleKind;

constexpr std::size_t kMostStreams = 64, kMostNames = 512;

/// "SMs Active [Throughput %]" is a share of what the device can do, called as the counter that it
/// is.
model::SampledMetric described(std::string_view text) {
  static constexpr std::pair<std::string_view, const char*> kCounters[] = {
      {"GR Active", "gr__cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"SMs Active", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"SM Active", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"Tensor Active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"DRAM Read Bandwidth", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"},
      {"DRAM Write Bandwidth", "dram__write_throughput.avg.pct_of_peak_sustained_elapsed"},
  };
  const auto bracket = text.find('[');
  const std::string_view name = base::trim(text.substr(0, bracket));
  const std::string_view unit =
      bracket == std::string_view::npos ? std::string_view() : text.substr(bracket);
  model::SampledMetric metric;
  metric.name = base::printable(name);
  metric.kind = SampleKind::kMean;
  if (unit.find('%') != std::string_view::npos) {
    metric.kind = SampleKind::kShare;
    metric.unit = "ratio";
    for (const auto& [nsys_name, counter] : kCounters)
      if (name == nsys_name)
        metric.name = counter;
  } else if (unit == "[MHz]") {
    metric.unit = "Hz";
  }
  return metric;
}

float scale_of(const model::SampledMetric& metric) {
  if (metric.unit == "ratio")
    return 0.01F;
  if (metric.unit == "Hz")
    return 1e6F;
  return 1.0F;
}

/// Rows of a sample follow each other, whichever order its metrics have.
class Collecting {
 public:
  void name(std::int64_t type, std::int64_t id, std::string_view text) {
    if (names_.size() < kMostNames)
      names_.emplace(std::pair(type, id), std::string(text));
  }

  void add(std::int64_t type, std::int64_t end_ns, std::int64_t id, float value, Outcome& outcome) {
    auto entry = of_type_.find(type);
    if (entry == of_type_.end()) {
      if (of_type_.size() == kMostStreams)
        return bad_row(outcome, "a GPU beyond the 64th");
      entry = of_type_.emplace(type, GpuSamples{}).first;
    }
    GpuSamples& gpu = entry->second;
    if (gpu.ends.empty() || gpu.ends.back() < end_ns)
      gpu.ends.push_back(end_ns);
    else if (gpu.ends.back() > end_ns)
      return bad_row(outcome, "samples are out of order");
    const auto name = names_.find({type, id});
    if (name == names_.end())
      return bad_row(outcome, "a metric without a name");
    const auto [column, is_new] = gpu.column_of.try_emplace(id, gpu.metrics.size());
    if (is_new)
      gpu.metrics.push_back(described(name->second));
    model::SampledMetric& metric = gpu.metrics[column->second];
    metric.values.resize(gpu.ends.size(), std::numeric_limits<float>::quiet_NaN());
    metric.values.back() = value * scale_of(metric);
  }

  [[nodiscard]] std::vector<GpuMetrics::Stream> take() {
    std::vector<GpuMetrics::Stream> out;
    for (auto& [type, gpu] : of_type_) {
      if (gpu.ends.size() < 2)
        continue;
      GpuMetrics::Stream stream{type & 0xff, {}};
      model::SampleStream& samples = stream.samples;
      samples.source = "nsys GPU metrics";
      samples.other_clock = true;  // of the GPU's timer, converted: activity tells what that left
      samples.interval_ns = median_interval(gpu.ends);
      for (std::size_t i = 0; i < gpu.ends.size(); ++i) {
        const bool follows = i > 0 && gpu.ends[i] - gpu.ends[i - 1] < samples.interval_ns * 3 / 2;
        samples.start_ns.push_back(follows ? gpu.ends[i - 1] : gpu.ends[i] - samples.interval_ns);
      }
      samples.end_ns = std::move(gpu.ends);
      for (model::SampledMetric& metric : gpu.metrics)
        metric.values.resize(samples.end_ns.size(), std::numeric_limits<float>::quiet_NaN());
      samples.metrics = std::move(gpu.metrics);
      out.push_back(std::move(stream));
    }
    return out;
  }

 private:
  /// Of two samples at least.
  static std::int64_t median_interval(const std::vector<std::int64_t>& ends) {
    std::vector<std::int64_t> intervals;
    for (std::size_t i = 1; i < ends.size(); ++i)
      intervals.push_back(ends[i] - ends[i - 1]);
    const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
    std::nth_element(intervals.begin(), middle, intervals.end());
    return *middle;
  }

  struct GpuSamples {
    std::vector<std::int64_t> ends;
    std::vector<model::SampledMetric> metrics;
    std::map<std::int64_t, std::size_t> column_of;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;
  std::map<std::int64_t, GpuSamples> of_type_;
};

/// O(rows). Names that are counters of conf/sample too are called as there, so that one formula
/// serves both.
GpuMetrics read_gpu_metrics(const Source& source) {
  GpuMetrics out;
  out.outcome.table = "GPU_METRICS";
  const Table* table = source.find("GPU_METRICS");
  const Table* names = source.find("TARGET_INFO_GPU_METRICS");
  if (table == nullptr || names == nullptr)
    return out;
  Collecting named;  // without samples
  Collecting collecting;
  const auto name = [&](const Value* row) {
    named.name(row[0].as_int(), row[1].as_int(), row[2].text());
  };
  const Scanned described = source.scan(
      *names, "typeId metricId metricName", [](std::size_t) {}, name);
  const auto restart = [&](std::size_t) {
    collecting = named;
    out.outcome.bad_rows = 0;
  };
  out.outcome.scanned =
      source.scan(*table, "timestamp typeId metricId value", restart, [&](const Value* row) {
        const bool has_ids = row[0].integer() && row[1].integer() && row[2].integer();
        const bool is_in_time = std::abs(row[0].bits) <= std::int64_t{1} << 60;
        if (!has_ids || !is_in_time || !std::isfinite(row[3].as_double()))
          return bad_row(out.outcome, "not a number");
        collecting.add(row[1].bits,
                       row[0].bits,
                       row[2].bits,
                       static_cast<float>(row[3].as_double()),
                       out.outcome);
      });
  if (described.damage && !out.outcome.scanned.damage)
    out.outcome.scanned.damage = described.damage;
  out.streams = collecting.take();
  return out;
}

/// Hands the streams over, with what is known of their GPUs.
void add_gpu_metrics(GpuMetrics&& from, const std::vector<Gpu>& gpus, model::Session& session) {
  for (GpuMetrics::Stream& stream : from.streams) {
    const auto gpu = std::ranges::find(gpus, stream.gpu, &Gpu::id);
    if (gpu != gpus.end()) {
      stream.samples.uuid = gpu->uuid;
      stream.samples.name = gpu->name;
      stream.samples.chip = gpu->chip;
    }
    for (std::uint32_t i = 0; i < session.devices.size() && !stream.samples.uuid.empty(); ++i)
      if (session.strings.view(session.devices[i].uuid) == stream.samples.uuid)
        stream.samples.device = i;
    session.samples.push_back(std::move(stream.samples));
  }
  if (from.outcome.bad_rows > 0)
    session.losses.push_back(
        {"damaged_samples",
         from.outcome.bad_rows,
         "GPU_METRICS: " + base::counted(from.outcome.bad_rows, "row was", "rows were") +
             " left out: " + from.outcome.bad_reason + "."});
}

// CPU samples of an export: COMPOSITE_EVENTS (one a sample, with its thread) and
// SAMPLING_CALLCHAINS (its frames, the innermost at depth 0, with names in StringIds). nsys names
// no interval in time where cycles trigger it, so it is the median gap between samples of one
// thread.

struct CpuSamples {
  struct Sample {
    std::int64_t id = 0, start_ns = 0;
    std::uint64_t thread = 0;  ///< globalTid
  };
  struct Frame {
    std::int64_t sample = 0, depth = 0, symbol = 0, module = 0;
  };
  std::vector<Sample> samples;
  std::vector<Frame> frames;
  std::map<std::int64_t, std::string> names;  ///< of symbols and modules
  std::vector<Scanned> scans;
};

constexpr std::int64_t kUsual = 1'000'000;     // ns between samples, where no thread has two
constexpr std::int64_t kAsleep = 100'000'000;  // the interval is never as long

std::int64_t interval_of(const std::vector<CpuSamples::Sample>& by_thread) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < by_thread.size(); ++i) {
    const std::int64_t gap = by_thread[i].start_ns - by_thread[i - 1].start_ns;
    if (by_thread[i].thread == by_thread[i - 1].thread && gap > 0 && gap < kAsleep)
      gaps.push_back(gap);
  }
  if (gaps.empty())
    return kUsual;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

CpuSamples read_cpu_samples(const Source& source) {
  CpuSamples out;
  const Table* events = source.find("COMPOSITE_EVENTS");
  const Table* chains = source.find("SAMPLING_CALLCHAINS");
  if (events == nullptr || chains == nullptr)
    return out;
  out.scans.push_back(source.scan(
      *events,
      "id start globalTid",
      [&](std::size_t) { out.samples.clear(); },
      [&](const Value* row) {
        out.samples.push_back(
            {row[0].as_int(), row[1].as_int(), static_cast<std::uint64_t>(row[2].as_int())});
      }));
  out.scans.push_back(source.scan(
      *chains,
      "id stackDepth symbol module",
      [&](std::size_t) { out.frames.clear(); },
      [&](const Value* row) {
        out.frames.push_back({row[0].as_int(), row[1].as_int(), row[2].as_int(), row[3].as_int()});
      }));
  return out;
}

/// Fills `names`.
void name_cpu_samples(const StringIds& strings, CpuSamples& read) {
  for (const CpuSamples::Frame& frame : read.frames)
    for (const std::int64_t id : {frame.symbol, frame.module})
      if (const auto [name, is_new] = read.names.try_emplace(id); is_new)
        if (const auto text = strings.find(id))
          name->second = *text;
}

/// Adds CPU samples to Session::cpu, with the threads that the session has already. O(n log n).
class CpuSampleAdder {
 public:
  CpuSampleAdder(CpuSamples read, model::Session& session)
      : read_(std::move(read)), session_(session), cpu_(session.cpu) {
    for (std::uint32_t i = 0; i < session.threads.size(); ++i) {
      const model::Thread& thread = session.threads[i];
      threads_.emplace(std::pair(session.processes[thread.process].pid, thread.tid), i);
    }
  }

  void add() {
    if (read_.samples.empty())
      return;
    std::ranges::sort(read_.frames, [](const auto& a, const auto& b) {
      return std::tie(a.sample, b.depth) < std::tie(b.sample, a.depth);  // outermost first
    });
    std::ranges::sort(read_.samples, [](const auto& a, const auto& b) {
      return std::tie(a.thread, a.start_ns) < std::tie(b.thread, b.start_ns);
    });
    cpu_.interval_ns = interval_of(read_.samples);
    cpu_.unwinding = "Nsight Systems";
    cpu_.switches = false;
    const bool only_samples = session_.ranges.empty() && session_.launches.empty();
    std::uint64_t current_thread = 0;
    for (const CpuSamples::Sample& sample : read_.samples) {
      if (cpu_.threads.empty() || sample.thread != current_thread)
        add_thread(sample.thread);
      current_thread = sample.thread;
      const auto thread = static_cast<std::uint32_t>(cpu_.threads.size() - 1);
      cpu_.samples.push_back({sample.start_ns, thread, stack_of(sample)});
      if (only_samples)
        extend_session(sample);
    }
  }

 private:
  void add_thread(std::uint64_t global_tid) {
    const auto global = static_cast<std::int64_t>(global_tid);
    const std::uint32_t pid = pid_of(process_of(global));
    const std::uint32_t tid = tid_of(global);
    const std::uint32_t thread = base::find_or(threads_, Pair{pid, tid}, model::kNone);
    cpu_.threads.push_back({pid, tid, 0, thread});
  }

  std::uint32_t stack_of(const CpuSamples::Sample& sample) {
    std::uint32_t stack = model::kNone;
    const auto has_smaller_id = [](const CpuSamples::Frame& frame, std::int64_t id) {
      return frame.sample < id;
    };
    auto frame =
        std::lower_bound(read_.frames.begin(), read_.frames.end(), sample.id, has_smaller_id);
    for (; frame != read_.frames.end() && frame->sample == sample.id; ++frame) {
      const std::uint32_t frame_index = index_of(*frame);
      const auto [entry, is_new] = stacks_.emplace(std::pair(stack, frame_index),
                                                   static_cast<std::uint32_t>(cpu_.stacks.size()));
      if (is_new)
        cpu_.stacks.push_back({stack, frame_index});
      stack = entry->second;
    }
    return stack;
  }

  std::uint32_t index_of(const CpuSamples::Frame& frame) {
    const auto [entry, is_new] = frames_.emplace(std::pair(frame.symbol, frame.module),
                                                 static_cast<std::uint32_t>(cpu_.frames.size()));
    if (is_new) {
      model::CpuFrame& out = cpu_.frames.emplace_back();
      out.name = session_.strings.intern(read_.names[frame.symbol]);
      out.module = session_.strings.intern(read_.names[frame.module]);
    }
    return entry->second;
  }

  /// Nothing but samples says when the program ran.
  void extend_session(const CpuSamples::Sample& sample) {
    const bool is_first = cpu_.samples.size() == 1;
    session_.begin_ns = is_first ? sample.start_ns : std::min(session_.begin_ns, sample.start_ns);
    session_.end_ns = std::max(session_.end_ns, sample.start_ns + cpu_.interval_ns);
  }

  CpuSamples read_;
  model::Session& session_;
  model::CpuProfile& cpu_;
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Pair, std::uint32_t> threads_;  ///< of the session, by process and thread id
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> frames_;  ///< by symbol and module
  std::map<Pair, std::uint32_t> stacks_;                                   ///< by parent and frame
};

/// A table that only nsys writes. Exports of CPU programs may have nothing but META_DATA and
/// NVTX_EVENTS.
bool is_ours(std::string_view table) {
  return table == "NVTX_EVENTS" || table == "StringIds" || table == "EXPORT_META_DATA" ||
         table == "META_DATA_EXPORT" || table == "CUDA_GRAPH_NODE_EVENTS" ||
         table == "COMPOSITE_EVENTS" || table.starts_with("CUPTI_ACTIVITY_KIND_") ||
         table.starts_with("TARGET_INFO_");
}

bool has_ours(const Source& source) {
  if (source.find("StringTable") != nullptr)
    return false;  // nvprof's, which has CUPTI tables too
  return std::any_of(source.tables().begin(), source.tables().end(), [](const auto& table) {
    return is_ours(table.first);
  });
}

/// Tables whose rows a report is made of. Newer versions of nsys may write one under a longer name.
constexpr std::string_view kRowTables[] = {"NVTX_EVENTS",
                                           "CUPTI_ACTIVITY_KIND_KERNEL",
                                           "CUPTI_ACTIVITY_KIND_RUNTIME",
                                           "CUPTI_ACTIVITY_KIND_MEMCPY",
                                           "CUPTI_ACTIVITY_KIND_MEMSET",
                                           "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                           "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"};

/// Names tables that replace a missing one of kRowTables (NVTX_EVENTS_V2). Their rows are not read.
void note_unknown_tables(const Source& source, model::Session& session) {
  for (const auto& [name, table] : source.tables()) {
    for (const std::string_view read_table : kRowTables) {
      const bool extends = name.size() > read_table.size() && name.starts_with(read_table);
      if (!extends || source.find(read_table) != nullptr)
        continue;
      std::string detail = "the table " + base::printable(name) + " is not read, and there is no ";
      detail += std::string(read_table) + ": what it holds is missing";
      session.losses.push_back({"unknown_table", 0, std::move(detail)});
      if (read_table == "CUPTI_ACTIVITY_KIND_KERNEL")
        session.unrecorded.kernels = true;
      if (read_table == "CUPTI_ACTIVITY_KIND_MEMCPY")
        session.unrecorded.copies = true;
    }
  }
}

/// What the tables hold, before it is put together.
struct Tables {
  Parts parts;
  GpuMetrics metrics;
  CpuSamples samples;
  Scanned strings_scan, nodes_scan;
};

Tables read_tables(const Source& source, bool with_kernels, int workers) {
  Tables tables;
  Parts& parts = tables.parts;
  std::vector<std::function<void()>> tasks;  // the large ones first
  if (with_kernels) {
    tasks.emplace_back([&] { parts.kernels = read_kernels(source); });
    tasks.emplace_back([&] { parts.calls = read_calls(source); });
  }
  tasks.emplace_back([&] { parts.nvtx = read_nvtx(source); });
  if (with_kernels) {
    tasks.emplace_back([&] { parts.copies = read_copies(source); });
    tasks.emplace_back([&] { parts.memsets = read_memsets(source); });
    tasks.emplace_back([&] { parts.synchronizations = read_synchronizations(source); });
    tasks.emplace_back([&] { parts.graphs = read_graphs(source); });
    tasks.emplace_back([&] { parts.memory = read_memory(source); });
    tasks.emplace_back([&] { parts.event_records = read_event_records(source); });
    tasks.emplace_back([&] { parts.nodes = read_node_events(source, tables.nodes_scan); });
    tasks.emplace_back([&] { tables.metrics = read_gpu_metrics(source); });
    tasks.emplace_back([&] { tables.samples = read_cpu_samples(source); });
  }
  tasks.emplace_back([&] {
    parts.strings.read(source, tables.strings_scan);
    parts.target = read_target(source, parts.strings);
  });
  base::parallel_for(tasks.size(), workers, [&](std::size_t i) { tasks[i](); });
  return tables;
}

base::Result<model::Session> read_source(const Source& source, const Options& options) {
  if (!has_ours(source)) {
    return base::fail(
        base::Code::kBadData,
        "a SQLite database, but not of Nsight Systems: no NVTX_EVENTS, no CUPTI tables",
        source.path().string(),
        "Give a file that `nsys export --type sqlite` wrote.");
  }
  // Two tables hold nearly all rows: more than four threads wait for memory.
  const int workers = base::worker_count(options.threads, 4);
  Tables tables = read_tables(source, options.kernels, workers);
  for (const Outcome* outcome : tables.parts.outcomes())
    if (outcome->error)
      return tl::make_unexpected(*outcome->error);
  name_cpu_samples(tables.parts.strings, tables.samples);
  const Target target = tables.parts.target;  // assemble() takes the parts
  model::Session session = assemble(std::move(tables.parts), workers);
  session.sources.push_back(
      {source.path().string(), "nsys-sqlite", target.product, target.schema, model::Maker::kNsys});
  const auto add_damage = [&](const Scanned& scan, const char* what) {
    if (!scan.damage)
      return;
    session.losses.push_back({"damaged_table", 0, std::string(what) + ": " + scan.damage->what});
  };
  add_damage(tables.metrics.outcome.scanned,
             "GPU_METRICS: damaged, the rest of the samples is missing");
  add_gpu_metrics(std::move(tables.metrics), target.gpus, session);
  add_damage(tables.strings_scan, "StringIds: damaged, names are missing");
  for (const Scanned& scan : tables.samples.scans)
    add_damage(scan, "CPU samples: damaged, the rest is missing");
  CpuSampleAdder(std::move(tables.samples), session).add();
  add_damage(tables.nodes_scan,
             "CUDA_GRAPH_NODE_EVENTS: damaged, some graph nodes have no captured path");
  note_unknown_tables(source, session);
  for (const Scanned& scan : target.scans)
    add_damage(scan, "a table that describes the machine is damaged");
  return session;
}

}  // namespace

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  if (!base::is_sqlite({reinterpret_cast<const char*>(head.data()), head.size()}))
    return false;
  const auto source = Source::open(path);
  return !source || has_ours(*source);  // a damaged one is for read() to explain
}

static base::Result<model::Session> read(const std::filesystem::path& path,
                                         const Options& options) {
  auto source = Source::open(path);
  if (!source) {
    base::Error error = source.error();
    if (error.hint.empty() && error.code == base::Code::kBadData)
      error.hint =
          "Check that the file was copied whole, or export it again with `nsys export --type "
          "sqlite`.";
    return tl::make_unexpected(std::move(error));
  }
  return read_source(*source, options);
}

base::Result<model::Session> read_through_library(const std::filesystem::path& path,
                                                  const Options& options) {
  auto source = TRY(Source::open(path));
  source.forget_pages();
  return read_source(source, options);
}

const Reader kReader{"nsys-sqlite",
                     sniff,
                     read,
                     [](const std::filesystem::path& path,
                        const Options&) -> base::Result<std::filesystem::path> { return path; }};

}  // namespace rangescope::read::nsys_sqlite
