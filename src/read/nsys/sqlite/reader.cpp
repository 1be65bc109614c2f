#include "read/nsys/sqlite/reader.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

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
    for (const auto& [known, counter] : kCounters)
      if (name == known) metric.name = counter;
  } else if (unit == "[MHz]") {
    metric.unit = "Hz";
  }
  return metric;
}

float scale_of(const model::SampledMetric& metric) {
  return metric.unit == "ratio" ? 0.01F : metric.unit == "Hz" ? 1e6F : 1.0F;
}

/// Rows of a sample follow each other, whichever order its metrics have.
class Collecting {
 public:
  void name(std::int64_t type, std::int64_t id, std::string_view text) {
    if (names_.size() < kMostNames) names_.emplace(std::pair(type, id), std::string(text));
  }

  void add(std::int64_t type, std::int64_t at, std::int64_t id, float value, Outcome& outcome) {
    auto found = of_type_.find(type);
    if (found == of_type_.end()) {
      if (of_type_.size() == kMostStreams) return bad_row(outcome, "a GPU beyond the 64th");
      found = of_type_.emplace(type, One{}).first;
    }
    One& one = found->second;
    if (one.ends.empty() || one.ends.back() < at)
      one.ends.push_back(at);
    else if (one.ends.back() > at)
      return bad_row(outcome, "samples are out of order");
    const auto known = names_.find({type, id});
    if (known == names_.end()) return bad_row(outcome, "a metric without a name");
    auto [column, fresh] = one.column_of.try_emplace(id, one.metrics.size());
    if (fresh) one.metrics.push_back(described(known->second));
    model::SampledMetric& metric = one.metrics[column->second];
    metric.values.resize(one.ends.size(), std::numeric_limits<float>::quiet_NaN());
    metric.values.back() = value * scale_of(metric);
  }

  [[nodiscard]] std::vector<GpuMetrics::Stream> take() {
    std::vector<GpuMetrics::Stream> out;
    for (auto& [type, one] : of_type_) {
      GpuMetrics::Stream stream{type & 0xff, {}};
      model::SampleStream& samples = stream.samples;
      samples.source = "nsys GPU metrics";
      samples.other_clock = true;  // of the GPU's timer, converted: activity tells what that left
      std::vector<std::int64_t> lengths;
      for (std::size_t i = 1; i < one.ends.size(); ++i)
        lengths.push_back(one.ends[i] - one.ends[i - 1]);
      if (lengths.empty()) continue;
      const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
      std::nth_element(lengths.begin(), middle, lengths.end());
      samples.interval_ns = *middle;
      for (std::size_t i = 0; i < one.ends.size(); ++i) {
        const bool follows = i > 0 && one.ends[i] - one.ends[i - 1] < samples.interval_ns * 3 / 2;
        samples.start_ns.push_back(follows ? one.ends[i - 1] : one.ends[i] - samples.interval_ns);
      }
      samples.end_ns = std::move(one.ends);
      for (model::SampledMetric& metric : one.metrics)
        metric.values.resize(samples.end_ns.size(), std::numeric_limits<float>::quiet_NaN());
      samples.metrics = std::move(one.metrics);
      out.push_back(std::move(stream));
    }
    return out;
  }

 private:
  struct One {
    std::vector<std::int64_t> ends;
    std::vector<model::SampledMetric> metrics;
    std::map<std::int64_t, std::size_t> column_of;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;
  std::map<std::int64_t, One> of_type_;
};

/// O(rows). Names that are counters of conf/sample too are called as there, so that one formula
/// serves both.
GpuMetrics read_gpu_metrics(const Source& source) {
  GpuMetrics out;
  out.outcome.table = "GPU_METRICS";
  const Table* table = source.find("GPU_METRICS");
  const Table* names = source.find("TARGET_INFO_GPU_METRICS");
  if (table == nullptr || names == nullptr) return out;
  Collecting fresh, collecting;
  const auto name = [&](const Value* row) {
    fresh.name(row[0].as_int(), row[1].as_int(), row[2].text());
  };
  const Scanned described = source.scan(
      *names, "typeId metricId metricName", [](std::size_t) {}, name);
  const auto restart = [&](std::size_t) {
    collecting = fresh;
    out.outcome.bad_rows = 0;
  };
  out.outcome.scanned =
      source.scan(*table, "timestamp typeId metricId value", restart, [&](const Value* row) {
        if (!row[0].integer() || !row[1].integer() || !row[2].integer() ||
            std::abs(row[0].bits) > std::int64_t{1} << 60 || !std::isfinite(row[3].as_double()))
          return bad_row(out.outcome, "not a number");
        collecting.add(row[1].bits, row[0].bits, row[2].bits,
                       static_cast<float>(row[3].as_double()), out.outcome);
      });
  if (described.damage && !out.outcome.scanned.damage)
    out.outcome.scanned.damage = described.damage;
  out.streams = collecting.take();
  return out;
}

/// Hands the streams over, with what is known of their GPUs.
void add_gpu_metrics(GpuMetrics&& from, const std::vector<Gpu>& gpus, model::Session& session) {
  for (GpuMetrics::Stream& stream : from.streams) {
    const auto gpu =
        std::ranges::find_if(gpus, [&](const Gpu& each) { return each.id == stream.gpu; });
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
        {"damaged_samples", from.outcome.bad_rows,
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
  if (gaps.empty()) return kUsual;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

CpuSamples read_cpu_samples(const Source& source) {
  CpuSamples out;
  const Table* events = source.find("COMPOSITE_EVENTS");
  const Table* chains = source.find("SAMPLING_CALLCHAINS");
  if (events == nullptr || chains == nullptr) return out;
  out.scans.push_back(source.scan(
      *events, "id start globalTid", [&](std::size_t) { out.samples.clear(); },
      [&](const Value* row) {
        out.samples.push_back(
            {row[0].as_int(), row[1].as_int(), static_cast<std::uint64_t>(row[2].as_int())});
      }));
  out.scans.push_back(source.scan(
      *chains, "id stackDepth symbol module", [&](std::size_t) { out.frames.clear(); },
      [&](const Value* row) {
        out.frames.push_back({row[0].as_int(), row[1].as_int(), row[2].as_int(), row[3].as_int()});
      }));
  return out;
}

/// Fills `names`.
void name_cpu_samples(const StringIds& strings, CpuSamples& read) {
  for (const CpuSamples::Frame& frame : read.frames)
    for (const std::int64_t id : {frame.symbol, frame.module})
      if (const auto [at, added] = read.names.try_emplace(id); added)
        if (const auto text = strings.find(id)) at->second = *text;
}

/// Into Session::cpu, with the threads that the session has already. O(n log n).
void add_cpu_samples(CpuSamples read, model::Session& session) {
  if (read.samples.empty()) return;
  std::ranges::sort(read.frames, [](const auto& a, const auto& b) {
    return a.sample != b.sample ? a.sample < b.sample : a.depth > b.depth;  // the outermost first
  });
  std::ranges::sort(read.samples, [](const auto& a, const auto& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.start_ns < b.start_ns;
  });
  model::CpuProfile& cpu = session.cpu;
  cpu.interval_ns = interval_of(read.samples);
  cpu.unwinding = "Nsight Systems";
  cpu.switches = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      threads;  // process and thread id: place
  for (std::uint32_t i = 0; i < session.threads.size(); ++i)
    threads.emplace(
        std::pair(session.processes[session.threads[i].process].pid, session.threads[i].tid), i);
  const auto text = [&](std::int64_t id) { return session.strings.intern(read.names[id]); };
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> frames;    // symbol and module
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stacks;  // parent and frame
  std::uint64_t on = 0;
  for (const CpuSamples::Sample& sample : read.samples) {
    if (cpu.threads.empty() || sample.thread != on) {
      on = sample.thread;
      const auto global = static_cast<std::int64_t>(on);
      const std::uint32_t pid = pid_of(process_of(global)), tid = tid_of(global);
      const auto known = threads.find({pid, tid});
      cpu.threads.push_back({pid, tid, 0, known == threads.end() ? model::kNone : known->second});
    }
    std::uint32_t stack = model::kNone;
    auto frame = std::lower_bound(
        read.frames.begin(), read.frames.end(), sample.id,
        [](const CpuSamples::Frame& each, std::int64_t id) { return each.sample < id; });
    for (; frame != read.frames.end() && frame->sample == sample.id; ++frame) {
      const auto [at, added] = frames.emplace(std::pair(frame->symbol, frame->module),
                                              static_cast<std::uint32_t>(cpu.frames.size()));
      if (added) {
        model::CpuFrame& made = cpu.frames.emplace_back();
        made.name = text(frame->symbol);
        made.module = text(frame->module);
      }
      const auto [place, fresh] = stacks.emplace(std::pair(stack, at->second),
                                                 static_cast<std::uint32_t>(cpu.stacks.size()));
      if (fresh) cpu.stacks.push_back({stack, at->second});
      stack = place->second;
    }
    cpu.samples.push_back(
        {sample.start_ns, static_cast<std::uint32_t>(cpu.threads.size() - 1), stack});
    if (session.ranges.empty() &&
        session.launches.empty()) {  // nothing else tells when the program ran
      session.begin_ns =
          cpu.samples.size() == 1 ? sample.start_ns : std::min(session.begin_ns, sample.start_ns);
      session.end_ns = std::max(session.end_ns, sample.start_ns + cpu.interval_ns);
    }
  }
}

/// A table that only nsys writes. Exports of CPU programs may have nothing but META_DATA and
/// NVTX_EVENTS.
bool is_ours(std::string_view table) {
  return table == "NVTX_EVENTS" || table == "StringIds" || table == "EXPORT_META_DATA" ||
         table == "META_DATA_EXPORT" || table == "CUDA_GRAPH_NODE_EVENTS" ||
         table == "COMPOSITE_EVENTS" || table.starts_with("CUPTI_ACTIVITY_KIND_") ||
         table.starts_with("TARGET_INFO_");
}

bool has_ours(const Source& source) {
  if (source.find("StringTable") != nullptr) return false;  // nvprof's, which has CUPTI tables too
  return std::any_of(source.tables().begin(), source.tables().end(),
                     [](const auto& table) { return is_ours(table.first); });
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
    for (const std::string_view known : kRowTables) {
      const bool extends = name.size() > known.size() && name.starts_with(known);
      if (!extends || source.find(known) != nullptr) continue;
      std::string detail = "the table " + base::printable(name) + " is not read, and there is no ";
      detail += std::string(known) + ": what it holds is missing";
      session.losses.push_back({"unknown_table", 0, std::move(detail)});
      if (known == "CUPTI_ACTIVITY_KIND_KERNEL") session.unrecorded.kernels = true;
      if (known == "CUPTI_ACTIVITY_KIND_MEMCPY") session.unrecorded.copies = true;
    }
  }
}

base::Result<model::Session> read_source(const Source& source, const Options& options) {
  if (!has_ours(source)) {
    return base::fail(
        base::Code::kBadData,
        "a SQLite database, but not of Nsight Systems: no NVTX_EVENTS, no CUPTI tables",
        source.path().string(), "Give a file that `nsys export --type sqlite` wrote.");
  }
  // Two tables hold nearly all rows: more than four threads wait for memory.
  const int workers = base::worker_count(options.threads, 4);
  Parts parts;
  GpuMetrics metrics;
  Scanned strings_scan, nodes_scan;
  CpuSamples samples;
  std::vector<std::function<void()>> tasks;
  if (options.kernels) {
    tasks.emplace_back([&] { parts.kernels = read_kernels(source); });
    tasks.emplace_back([&] { parts.calls = read_calls(source); });
  }
  tasks.emplace_back([&] { parts.nvtx = read_nvtx(source); });
  if (options.kernels) {
    tasks.emplace_back([&] { parts.copies = read_copies(source); });
    tasks.emplace_back([&] { parts.memsets = read_memsets(source); });
    tasks.emplace_back([&] { parts.synchronizations = read_synchronizations(source); });
    tasks.emplace_back([&] { parts.graphs = read_graphs(source); });
    tasks.emplace_back([&] { parts.memory = read_memory(source); });
    tasks.emplace_back([&] { parts.event_records = read_event_records(source); });
    tasks.emplace_back([&] { parts.nodes = read_node_events(source, nodes_scan); });
    tasks.emplace_back([&] { metrics = read_gpu_metrics(source); });
  }
  if (options.kernels) tasks.emplace_back([&] { samples = read_cpu_samples(source); });
  tasks.emplace_back([&] {
    parts.strings.read(source, strings_scan);
    parts.target = read_target(source, parts.strings);
  });
  base::parallel_for(tasks.size(), workers,
                     [&](std::size_t i) { tasks[i](); });  // the large ones first
  for (const Outcome* outcome : parts.outcomes())
    if (outcome->error) return tl::make_unexpected(*outcome->error);
  const std::string product = parts.target.product, schema = parts.target.schema;
  const std::vector<Scanned> small_scans = parts.target.scans;
  const std::vector<Gpu> gpus = parts.target.gpus;
  name_cpu_samples(parts.strings, samples);
  model::Session session = assemble(std::move(parts), workers);
  session.sources.push_back(
      {source.path().string(), "nsys-sqlite", product, schema, model::Maker::kNsys});
  const auto damaged = [&](const Scanned& scan, const char* what) {
    if (!scan.damage) return;
    session.losses.push_back({"damaged_table", 0, std::string(what) + ": " + scan.damage->what});
  };
  damaged(metrics.outcome.scanned, "GPU_METRICS: damaged, the rest of the samples is missing");
  add_gpu_metrics(std::move(metrics), gpus, session);
  damaged(strings_scan, "StringIds: damaged, names are missing");
  for (const Scanned& scan : samples.scans)
    damaged(scan, "CPU samples: damaged, the rest is missing");
  add_cpu_samples(std::move(samples), session);
  damaged(nodes_scan, "CUDA_GRAPH_NODE_EVENTS: damaged, some graph nodes have no captured path");
  note_unknown_tables(source, session);
  for (const Scanned& scan : small_scans)
    damaged(scan, "a table that describes the machine is damaged");
  return session;
}

}  // namespace

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  if (!base::is_sqlite({reinterpret_cast<const char*>(head.data()), head.size()})) return false;
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

const Reader kReader{"nsys-sqlite", sniff, read,
                     [](const std::filesystem::path& path,
                        const Options&) -> base::Result<std::filesystem::path> { return path; }};

}  // namespace rangescope::read::nsys_sqlite
