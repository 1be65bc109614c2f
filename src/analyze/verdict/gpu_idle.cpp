// The GPU has nothing to do: it waits for the CPU, for launches, for synchronization, or for
// copies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/program.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;

/// Settled occurrences of a region and how the GPU spent them.
struct Settled {
  double busy_share = 0;
  double median_ns = 0;  ///< of one
  double wall_ns = 0;    ///< of all settled occurrences, those included that counters slowed
  double idle_ns = 0;  ///< of `wall_ns`, on each of the threads or processes that run side by side
  double kernels_each = 0;  ///< in one occurrence
};

/// What a program without ranges gave the GPU, and how long it ran.
struct WholeProgram {
  const model::GpuWork* gpu = nullptr;
  double wall_ns = 0;
  double span_ns = 0;  ///< from the first to the last GPU work, the mean of its GPUs
};

// Recorded natively there is one region, which begins with the program and ends with it; in files
// of others there is none.
std::optional<WholeProgram> whole_program(const model::Report& report) {
  const bool is_one_region = model::is_program(report) && report.regions.front().occurrences == 1;
  const bool is_without_ranges = report.regions.empty() && !(report.run.duration_ns <= 0);
  if (!is_one_region && !is_without_ranges)
    return std::nullopt;
  const auto& gpu = is_one_region ? report.regions.front().gpu : report.total;
  if (!gpu || gpu->partial || !(gpu->span_ns > 0))
    return std::nullopt;
  WholeProgram program;
  program.gpu = &*gpu;
  program.wall_ns = report.run.duration_ns;
  if (is_one_region)
    program.wall_ns = report.regions.front().wall.inclusive_ns;
  const auto devices = static_cast<double>(std::max<std::size_t>(1, report.devices.size()));
  program.span_ns = std::min(gpu->span_ns / devices, program.wall_ns);
  return program;
}

std::optional<Settled> settled_of(const Case& facts, std::size_t row) {
  const model::Region& region = facts.region(row);
  const bool is_recorded = region.gpu && region.steady && region.steady->busy_share;
  if (!is_recorded || region.steady->occurrences <= 0)
    return std::nullopt;
  const model::GpuWork& gpu = *region.gpu;
  if (gpu.partial && gpu.recorded_occurrences <= 0)
    return std::nullopt;
  if (gpu.kernels <= 0 && gpu.copies <= 0 && gpu.graph_launches <= 0)
    return std::nullopt;
  const model::Steady& steady = *region.steady;
  const auto occurrences =
      static_cast<double>(std::max(region.occurrences - steady.left_out, steady.occurrences));
  Settled out;
  out.busy_share = *steady.busy_share;
  out.median_ns = steady.wall_ns.median;
  out.wall_ns = steady.wall_ns.mean * occurrences;
  const double idle_share = std::max(0.0, 1 - out.busy_share);
  const double idle_of_region_ns = out.wall_ns * idle_share / facts.side_by_side(row);
  out.idle_ns = std::min(facts.gpu_idle_ns(), idle_of_region_ns);
  if (const auto program = whole_program(facts.report())) {
    // Before the first and after the last GPU work nothing waits for the CPU.
    out.busy_share = std::min(1.0, gpu.busy_ns / gpu.span_ns);
    out.median_ns = out.wall_ns = program->span_ns;
    out.idle_ns = std::min(facts.gpu_idle_ns(), program->span_ns * (1 - out.busy_share));
  }
  std::int64_t recorded = region.occurrences;
  if (gpu.partial)
    recorded = gpu.recorded_occurrences;
  if (recorded > 0 && gpu.kernels > 0)
    out.kernels_each = static_cast<double>(gpu.kernels) / static_cast<double>(recorded);
  return out;
}

bool settles(const model::Region& region) {
  return region.steady->left_out > 0;
}

std::string counted_syncs(const model::GpuWork& gpu, std::string_view noun) {
  const auto syncs = static_cast<std::uint64_t>(std::max<std::int64_t>(gpu.syncs, 0));
  return base::counted(syncs, noun);
}

/// What launch calls cost, next to the kernels that they start.
struct LaunchCost {
  explicit LaunchCost(const model::Region& region) {
    const model::GpuWork& gpu = *region.gpu;
    const double kernels = std::max(1.0, static_cast<double>(gpu.kernels));
    share = gpu.launch_ns / region.wall.inclusive_ns;
    call_ns = gpu.launch_ns / kernels;
    kernel_ns = gpu.kernel_ns / kernels;
  }

  double share = 0;  ///< of wall time
  double call_ns = 0, kernel_ns = 0;
};

bool is_launch_bound(const model::GpuWork& gpu, const Settled& settled, const LaunchCost& cost) {
  if (gpu.partial || gpu.graph_launches > 0)
    return false;
  // Launches wait for the GPU nearly as long as their calls take; where not, a few calls loaded
  // code or allocated.
  double latency_ns = 0;
  if (gpu.launch_latency_ns)
    latency_ns = gpu.launch_latency_ns->median;
  const bool are_calls_alike = !(latency_ns > 0) || cost.call_ns < kFewLong * latency_ns;
  const bool is_launching_often = settled.kernels_each >= kManyKernels && cost.share >= kLaunching;
  return is_launching_often && cost.kernel_ns < cost.call_ns && are_calls_alike;
}

/// "the GPU is busy 12 % of 4.1 ms per instance in steady state"
std::string busy_text(const model::Region& region, const Settled& settled) {
  std::string text = fmt::format(
      "the GPU is busy {} of {}", share_text(settled.busy_share), format_ns(settled.median_ns));
  if (region.occurrences > 1)
    text += " per instance";
  if (region.occurrences > 1 && settles(region))
    text += " in steady state";
  return text;
}

void add_idle_evidence(const Case& facts,
                       const model::Region& region,
                       const Settled& settled,
                       model::Verdict& verdict) {
  verdict.evidence = {{"gpu_busy_share", settled.busy_share},
                      {"wall_ns.median", region.steady->wall_ns.median},
                      {"wall_ns.p95", region.steady->wall_ns.p95},
                      {"occurrences", static_cast<double>(region.steady->occurrences)}};
  if (!facts.report().kernels_chosen) {
    verdict.evidence["kernels_per_occurrence"] = settled.kernels_each;
    if (settled.kernels_each > 0)
      verdict.evidence["ns_per_kernel"] = settled.median_ns / settled.kernels_each;
  }
  if (!std::isnan(region.gpu->launch_ns) && region.gpu->kernels > 0 && !region.gpu->partial) {
    const LaunchCost cost(region);
    verdict.evidence["launch_call_ns"] = cost.call_ns;
    verdict.evidence["kernel_ns"] = cost.kernel_ns;
  }
  if (!region.cpu)
    return;
  for (const model::CpuPart* part :
       {&region.cpu->python, &region.cpu->native, &region.cpu->cuda, &region.cpu->waiting})
    verdict.evidence["cpu_" + part->kind + "_share"] = part->ns / region.cpu->whole_ns();
}

model::Verdict idle_verdict(const Case& facts, std::size_t row, const Settled& settled) {
  const model::Region& region = facts.region(row);
  const std::string busy = busy_text(region, settled);
  const LaunchCost cost(region);
  if (!is_launch_bound(*region.gpu, settled, cost))
    return facts.about("waits_for_cpu", row, "CPU-bound: " + busy, settled.idle_ns);
  std::string text = fmt::format("launch-bound: a kernel takes {}, its launch {}; {}",
                                 format_ns(cost.kernel_ns),
                                 format_ns(cost.call_ns),
                                 busy);
  return facts.about("launch_bound", row, std::move(text), settled.idle_ns);
}

}  // namespace

void find_waits_for_cpu(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const auto settled = settled_of(facts, row);
    if (!settled || !(settled->busy_share < kGpuIdle))
      return 0.0;
    return settled->idle_ns;
  };
  for (const std::size_t row : facts.worst(saves)) {
    const Settled settled = *settled_of(facts, row);
    if (!facts.matters(settled.idle_ns))
      continue;
    const model::Region& region = facts.region(row);
    model::Verdict verdict = idle_verdict(facts, row, settled);
    add_idle_evidence(facts, region, settled, verdict);
    verdict.next = facts.show("-f perfetto -o trace.pftrace");
    const std::string causes = cpu_causes(region, facts.report().run);
    if (!causes.empty()) {
      verdict.text += ". CPU";
      if (settles(region))
        verdict.text += ", with warm-up";  // samples are of all instances
      verdict.text += ": " + causes;
      verdict.next = facts.show("--cpu " + base::shell_quote(model::path_text(region)));
    }
    out.push_back(std::move(verdict));
  }
}

void find_start_up(const Case& facts, std::vector<model::Verdict>& out) {
  const auto program = whole_program(facts.report());
  if (!program)
    return;
  const double share = 1 - program->span_ns / program->wall_ns;
  if (share < kStartUp)
    return;
  const std::string text =
      fmt::format("start-up and exit are {} of the run: all GPU work is within {}",
                  share_text(share),
                  format_ns(program->span_ns));
  model::Verdict verdict;
  if (facts.rows() > 0)
    verdict = facts.about("start_up", 0, text, std::nullopt);
  else
    verdict = facts.about_run("start_up", text, std::nullopt);
  verdict.evidence = {{"gpu_span_ns", program->span_ns},
                      {"gpu_busy_ns", program->gpu->busy_ns},
                      {"start_share", share}};
  if (facts.rows() > 0) {
    const model::Region& region = facts.region(0);
    const std::string causes = cpu_causes(region, facts.report().run);
    if (!causes.empty())
      verdict.text += ". CPU: " + causes;
    verdict.next = facts.show("--cpu " + base::shell_quote(model::path_text(region)));
  }
  out.push_back(std::move(verdict));
}

void find_synchronization(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const auto settled = settled_of(facts, row);
    const model::Region& region = facts.region(row);
    if (!settled || region.gpu->partial || !(region.gpu->sync_ns > 0))
      return 0.0;
    const bool is_long = region.gpu->sync_ns >= kSynchronizing * region.wall.inclusive_ns;
    if (!is_long || !(settled->busy_share < kGpuFull))
      return 0.0;
    // Waiting for work that runs costs nothing; the GPU's gaps are what could be filled.
    const double idle_share = std::max(0.0, 1 - settled->busy_share);
    const double wall_ns = region.wall.inclusive_ns / facts.side_by_side(row);
    const double waiting_ns = region.gpu->sync_ns / facts.side_by_side(row);
    return std::min(waiting_ns, wall_ns * idle_share);
  };
  for (const std::size_t row : facts.worst(saves, 1)) {
    const double saved_ns = saves(row);
    if (!facts.matters(saved_ns))
      continue;
    const model::Region& region = facts.region(row);
    const double share = region.gpu->sync_ns / region.wall.inclusive_ns;
    std::string text = fmt::format("{} block {} ({}); the GPU idles after each",
                                   counted_syncs(*region.gpu, "synchronization"),
                                   format_ns(region.gpu->sync_ns),
                                   share_text(share));
    model::Verdict verdict = facts.about("synchronization", row, std::move(text), saved_ns);
    const auto syncs = static_cast<double>(region.gpu->syncs);
    verdict.evidence["sync_ns"] = region.gpu->sync_ns;
    verdict.evidence["syncs"] = syncs;
    verdict.evidence["sync_share"] = share;
    verdict.evidence["gpu_busy_share"] = *region.steady->busy_share;
    if (region.occurrences > 0)
      verdict.evidence["syncs_per_occurrence"] = syncs / static_cast<double>(region.occurrences);
    verdict.next = facts.show("-f perfetto -o trace.pftrace");
    out.push_back(std::move(verdict));
  }
}

double copies_alone_ns(const model::GpuWork& gpu) {
  if (!(gpu.copy_ns > 0))
    return 0;
  double copying_ns = gpu.copy_busy_ns;
  if (std::isnan(copying_ns))
    copying_ns = gpu.copy_ns;  // of a digest, which has no union
  if (gpu.busy_ns >= 0)
    copying_ns = std::min(copying_ns, gpu.busy_ns);
  return copying_ns - std::max(0.0, gpu.overlap_ns);
}

namespace {

/// Time in which only copies ran, where they are known by number.
double counted_copies_alone_ns(const model::GpuWork& gpu) {
  if (gpu.copies <= 0)
    return 0.0;
  return copies_alone_ns(gpu);
}

/// Do copies take a large part of the GPU's time, mostly without kernels at the same time?
bool is_copying(const model::GpuWork& gpu) {
  const double alone_ns = counted_copies_alone_ns(gpu);
  if (alone_ns <= 0 || alone_ns < kCopying * gpu.busy_ns)
    return false;
  return gpu.overlap_ns < kHidden * (alone_ns + gpu.overlap_ns);
}

std::string copies_text(const model::GpuWork& gpu) {
  const double overlap_share = gpu.overlap_ns / (counted_copies_alone_ns(gpu) + gpu.overlap_ns);
  return fmt::format("copies: {} overlapped with kernels; {} of {} take {} at {}",
                     share_text(overlap_share),
                     base::format_count(gpu.copies),
                     base::format_bytes(gpu.copy_bytes),
                     format_ns(gpu.copy_ns),
                     base::format_si(gpu.copy_bytes / (gpu.copy_ns / 1e9), "B/s"));
}

void complete_copies(const Case& facts, const model::GpuWork& gpu, model::Verdict& verdict) {
  verdict.text = copies_text(gpu);
  verdict.evidence = {{"copies", static_cast<double>(gpu.copies)},
                      {"copy_bytes", gpu.copy_bytes},
                      {"copy_ns", gpu.copy_ns},
                      {"overlap_ns", gpu.overlap_ns},
                      {"bytes_per_copy", gpu.copy_bytes / static_cast<double>(gpu.copies)}};
  double to_host_ns = 0;
  for (const model::CopyRow& row : gpu.copies_by_kind)
    if (row.kind == model::CopyKind::kDeviceToHost)
      to_host_ns += row.total_ns;
  verdict.evidence["to_host_share"] = to_host_ns / gpu.copy_ns;
  verdict.next = facts.show("-f perfetto -o trace.pftrace");
}

}  // namespace

void find_copies(const Case& facts, std::vector<model::Verdict>& out) {
  if (!facts.has_timeline())
    return;
  const auto saves = [&](std::size_t row) {
    const auto& gpu = facts.region(row).gpu;
    if (!gpu || !is_copying(*gpu))
      return 0.0;
    return counted_copies_alone_ns(*gpu) / facts.gpus_side_by_side(row);
  };
  for (const std::size_t row : facts.worst(saves, 1)) {
    if (!facts.matters(saves(row)))
      continue;
    model::Verdict verdict = facts.about("copies", row, "", saves(row));
    complete_copies(facts, *facts.region(row).gpu, verdict);
    out.push_back(std::move(verdict));
  }
  const auto& outside = facts.report().unattributed;
  if (!outside || !is_copying(*outside))
    return;
  const double outside_ns = counted_copies_alone_ns(*outside);
  if (outside_ns < kMattersOfRun * facts.whole_ns())
    return;
  model::Verdict verdict = facts.about_run("copies", "", outside_ns);
  if (facts.rows() > 0)
    verdict.path = "outside ranges";
  complete_copies(facts, *outside, verdict);
  out.push_back(std::move(verdict));
}

void find_cuda_calls(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  // Recordings of calls alone: what ran on the GPU is not known.
  if (!report.total || report.total->kernels > 0 || report.total->busy_ns > 0)
    return;
  if (!(report.total->sync_ns > 0) || !(report.run.duration_ns > 0))
    return;
  const double share = report.total->sync_ns / report.run.duration_ns;
  if (share < kSynchronizing)
    return;
  std::string text = fmt::format("{} wait {} for the GPU ({} of the run)",
                                 counted_syncs(*report.total, "CUDA call"),
                                 format_ns(report.total->sync_ns),
                                 share_text(share));
  model::Verdict verdict = facts.about_run("cuda_calls", std::move(text), report.total->sync_ns);
  verdict.evidence["sync_ns"] = report.total->sync_ns;
  verdict.evidence["syncs"] = static_cast<double>(report.total->syncs);
  out.push_back(std::move(verdict));
}

void find_idle_gpu(const Case& facts, std::vector<model::Verdict>& out) {
  auto share = facts.gpu_busy_share();
  if (!share)
    return;
  constexpr std::string_view kExplaining[] = {"waits_for_cpu",
                                              "launch_bound",
                                              "synchronization",
                                              "outside_ranges",
                                              "hot_region",
                                              "warm_up"};
  const bool is_explained = std::ranges::any_of(out, [&](const model::Verdict& verdict) {
    return std::ranges::find(kExplaining, verdict.kind) != std::end(kExplaining);
  });
  const bool has_start_up = std::ranges::find(out, "start_up", &model::Verdict::kind) != out.end();
  if (is_explained || (has_start_up && facts.rows() > 0))
    return;
  double wall_ns = facts.report().run.duration_ns;
  const double busy_ns = *share * wall_ns;
  std::string_view stretch = "run";
  if (has_start_up) {  // which has a line: the rest is from the first to the last GPU work
    wall_ns = whole_program(facts.report())->span_ns;
    share = std::min(1.0, busy_ns / wall_ns);
    stretch = "time from its first to its last work";
  }
  if (*share >= kGpuIdle)
    return;
  std::string text = fmt::format("the GPU is idle {} of the {}: busy {} of {}",
                                 share_text(1 - *share),
                                 stretch,
                                 format_ns(busy_ns),
                                 format_ns(wall_ns));
  model::Verdict verdict = facts.about_run("idle_gpu", std::move(text), wall_ns - busy_ns);
  verdict.evidence = {{"gpu_busy_share", *share}};
  verdict.next = facts.show("-f perfetto -o trace.pftrace");
  out.push_back(std::move(verdict));
}

}  // namespace rangescope::analyze
