// Reports made by hand for the exporters' tests: small, with everything in them that a format must
// get right.
#pragma once

#include "model/report.hpp"

namespace rangescope::report {

inline model::Region sample_region(model::Report& report,
                                   std::vector<std::string> path,
                                   std::uint32_t parent,
                                   std::int64_t occurrences,
                                   double inclusive_ns,
                                   double exclusive_ns) {
  model::Region region;
  region.id = static_cast<std::uint32_t>(report.regions.size());
  region.parent = parent;
  region.depth = static_cast<std::uint32_t>(path.size() - 1);
  region.path = std::move(path);
  region.occurrences = occurrences;
  region.threads = region.processes = 1;
  region.wall.inclusive_ns = inclusive_ns;
  region.wall.exclusive_ns = exclusive_ns;
  const double mean = inclusive_ns / static_cast<double>(occurrences);
  region.wall.per_occurrence_ns = {mean / 2, mean, mean * 1.5, mean * 2, mean, mean / 4};
  region.wall.share = inclusive_ns / 10e9;
  return region;
}

/// NVTX only: a tree, another domain, a start/end range, an unclosed one, names that are not UTF-8
/// or hold separators.
inline model::Report nvtx_sample() {
  model::Report report;
  report.run = {.id = "20260102-030405-7",
                .tool = "rangescope 0.1.0",
                .command = {"./app", "a b"},
                .cwd = "/home/me",
                .start_unix_ns = 1767323045000000000,
                .duration_ns = 10e9,
                .exit_code = 0,
                .host = "node1",
                .sources = {"native: rangescope 0.1.0, 1.0"},
                .environment = {{"cpu", "A CPU"}}};
  report.processes = {{.pid = 7,
                       .parent_pid = 1,
                       .name = "/home/me/app",
                       .start_ns = 0,
                       .end_ns = 10e9,
                       .ranges = 76}};
  report.regions.push_back(sample_region(report, {"decode"}, model::kNone, 4, 8e9, 2e9));
  report.regions.back().unclosed = 1;
  report.regions.push_back(sample_region(report, {"decode", "layer|0, \"x\""}, 0, 64, 6e9, 6e9));
  report.regions.push_back(sample_region(report, {"caf\xe9"}, model::kNone, 1, 1234, 1234));
  report.regions.push_back(sample_region(report, {"step"}, model::kNone, 2, 5e6, 5e6));
  report.regions.back().domain = "LLM";
  report.regions.push_back(sample_region(report, {"request"}, model::kNone, 3, 9e9, 9e9));
  report.regions.back().kind = model::RangeKind::kStartEnd;
  report.losses = {{"dropped_events", 12, "12 events did not fit into the capture"}};
  report.findings = {{"filter.missing_slash",
                      "?",
                      model::Grade::kFail,
                      "'decode' means start/end ranges",
                      "Write decode/",
                      {"rangescope report latest --include decode/"}}};
  report.notes = {"clock: CLOCK_MONOTONIC"};
  return report;
}

/// With a GPU, metrics and two scopes.
inline model::Report gpu_sample() {
  model::Report report = nvtx_sample();
  report.losses.clear();
  report.findings.clear();
  report.notes.clear();
  report.regions.resize(2);
  report.regions[0].unclosed = 0;
  report.device_names = {"NVIDIA H200"};
  report.devices.resize(1);
  report.devices[0].process = 0;
  report.devices[0].sm_count = 132;
  model::GpuWork work;
  work.kernels = 640;
  work.exclusive_kernels = 0;
  work.distinct_kernels = 2;
  work.kernel_ns = 4e9;
  work.busy_ns = 3.9e9;
  work.span_ns = 5e9;
  work.idle_ns = 1.1e9;
  work.copies = 2;
  work.copy_bytes = 3 << 20;
  work.copy_ns = 1e6;
  work.launch_latency_ns = model::Spread{1e3, 5e3, 9e3, 2e4, 5.5e3, 1e3};
  work.copies_by_kind = {{model::CopyKind::kHostToDevice, 2, 3 << 20, 1e6}};
  model::KernelRow row;
  row.name = "void gemm<float, 128>(float*)";
  row.short_name = "gemm";
  row.calls = 640;
  row.total_ns = 4e9;
  row.duration_ns = {5e6, 6e6, 7e6, 8e6, 6.25e6, 1e5};
  row.share = 1;
  row.shape.grid = {16, 8, 1};
  row.shape.block = {256, 1, 1};
  work.top_kernels = {row};
  report.regions[0].gpu = work;
  work.exclusive_kernels = 640;
  report.regions[1].gpu = work;
  report.total = work;
  report.unattributed = model::GpuWork{};
  report.unattributed->kernels = 3;
  report.unattributed->kernel_ns = 12e3;
  report.unattributed->busy_ns = 12e3;
  report.kernels = {row};
  report.regions[1].metrics["dram__bytes.sum"] = {.value = 1.5e9,
                                                  .unit = "byte",
                                                  .min = 1.4e9,
                                                  .max = 1.6e9,
                                                  .rounds = 3,
                                                  .source = "cupti range"};
  report.regions[1].metrics["sm__cycles.avg"] = {.unit = "cycle", .absent = "no complete round"};
  report.metric_columns = {
      {"dram__bytes.sum", "DRAM bytes"}, {"sm__cycles.avg", "SM cycles"}, {"not.there", "none"}};
  report.regions[1].gpu->partial = true;
  report.regions[1].gpu->recorded_occurrences = 4;
  report.regions[1].utilization =
      model::Utilization{.busy_ns = 3.9e9, .executed = 0.25, .formula = "executed: 1 s / 4 s"};
  report.regions[1].bound = model::Bound{"memory", "DRAM at 82 % of its peak"};
  report.regions[1].samples = {{0, 1e6, 9e5}, {2e6, 1.5e6, 1e6}};
  for (std::uint32_t i = 0; i < 2; ++i) {  // the same again, of process 0
    model::Region copy = report.regions[i];
    copy.id = i + 2;
    copy.process = 0;
    if (copy.parent != model::kNone)
      copy.parent += 2;
    report.regions.push_back(std::move(copy));
  }
  return report;
}

}  // namespace rangescope::report
