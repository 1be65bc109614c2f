#include "read/nsys/sqlite/reader.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/workers.hpp"
#include "read/nsys/sqlite/assemble.hpp"
#include "read/nsys/sqlite/cpu_samples.hpp"
#include "read/nsys/sqlite/gpu_metrics.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

constexpr char kFileHead[] = "SQLite format 3";

/// A table that only nsys writes. Exports of CPU programs may have nothing but META_DATA and NVTX_EVENTS.
bool is_ours(std::string_view table) {
  return table == "NVTX_EVENTS" || table == "StringIds" || table == "EXPORT_META_DATA" || table == "META_DATA_EXPORT" ||
         table == "CUDA_GRAPH_NODE_EVENTS" || table == "COMPOSITE_EVENTS" ||
         table.starts_with("CUPTI_ACTIVITY_KIND_") || table.starts_with("TARGET_INFO_");
}

bool has_ours(const Source& source) {
  if (source.find("StringTable") != nullptr) return false;  // nvprof's, which has CUPTI tables too
  return std::any_of(source.tables().begin(), source.tables().end(),
                     [](const auto& table) { return is_ours(table.first); });
}

base::Result<model::Session> read_source(const Source& source, const Options& options) {
  if (!has_ours(source)) {
    return base::fail(base::Code::kBadData,
                      "a SQLite database, but none of Nsight Systems: no NVTX_EVENTS, no CUPTI tables",
                      source.path().string(), "Give a file that `nsys export --type sqlite` wrote.");
  }
  // Two tables hold nearly all rows: more than four threads wait for memory.
  const int workers = base::worker_count(options.threads, 4);
  Parts parts;
  std::vector<NodeEvent> nodes;
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
    tasks.emplace_back([&] { nodes = read_node_events(source, nodes_scan); });
    tasks.emplace_back([&] { metrics = read_gpu_metrics(source); });
  }
  if (options.kernels) tasks.emplace_back([&] { samples = read_cpu_samples(source); });
  tasks.emplace_back([&] {
    parts.strings.read(source, strings_scan);
    parts.target = read_target(source, parts.strings);
  });
  base::parallel_for(tasks.size(), workers, [&](std::size_t i) { tasks[i](); });  // the large ones first
  for (const Outcome* outcome :
       {&parts.nvtx.outcome, &parts.calls.outcome, &parts.kernels.outcome, &parts.copies.outcome,
        &parts.memsets.outcome, &parts.graphs.outcome, &parts.synchronizations.outcome}) {
    if (outcome->error) return tl::make_unexpected(*outcome->error);
  }
  const std::string product = parts.target.product, schema = parts.target.schema;
  const std::vector<Scanned> small_scans = parts.target.scans;
  const std::vector<Gpu> gpus = parts.target.gpus;
  name_cpu_samples(parts.strings, samples);
  model::Session session = assemble(std::move(parts), nodes, workers);
  session.sources.push_back({source.path().string(), "nsys-sqlite", product, schema, model::Maker::kNsys});
  const auto damaged = [&](const Scanned& scan, const char* what) {
    if (!scan.damage) return;
    session.losses.push_back({"damaged_table", 0, std::string(what) + ": " + scan.damage->what});
  };
  damaged(metrics.outcome.scanned, "GPU_METRICS: damaged, the rest of the samples is missing");
  add_gpu_metrics(std::move(metrics), gpus, session);
  damaged(strings_scan, "StringIds: damaged, names are missing");
  for (const Scanned& scan : samples.scans) damaged(scan, "CPU samples: damaged, the rest is missing");
  add_cpu_samples(std::move(samples), session);
  damaged(nodes_scan, "CUDA_GRAPH_NODE_EVENTS: damaged, some graph nodes have no captured path");
  for (const Scanned& scan : small_scans) damaged(scan, "a table that describes the machine is damaged");
  return session;
}

}  // namespace

bool NsysSqliteReader::sniff(std::span<const std::byte> head, const std::filesystem::path& path) const {
  if (head.size() < sizeof kFileHead || std::memcmp(head.data(), kFileHead, sizeof kFileHead) != 0) return false;
  const auto source = Source::open(path);
  return !source || has_ours(*source);  // a damaged one is for read() to explain
}

base::Result<model::Session> NsysSqliteReader::read(const std::filesystem::path& path, const Options& options) const {
  auto source = Source::open(path);
  if (!source) {
    base::Error error = source.error();
    if (error.hint.empty() && error.code == base::Code::kBadData)
      error.hint = "Check that the file was copied whole, or export it again with `nsys export --type sqlite`.";
    return tl::make_unexpected(std::move(error));
  }
  return read_source(*source, options);
}

base::Result<model::Session> read_through_library(const std::filesystem::path& path, const Options& options) {
  auto source = Source::open(path);
  if (!source) return base::fail(std::move(source));
  source->forget_pages();
  return read_source(*source, options);
}

}  // namespace rangescope::read::nsys_sqlite
