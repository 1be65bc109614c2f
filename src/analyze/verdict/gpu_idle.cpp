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
  double each_ns = 0;  ///< the median one
  double wall_ns = 0;  ///< of all settled occurrences, those included that counters slowed
  double idle_ns = 0;  ///< of `wall_ns`, on each of the threads or processes that run side by side
  double kernels_each = 0;  ///< in one occurrence
};

/// What a program without ranges gave the GPU, and how long it ran.
struct Whole {
  const model::GpuWork* gpu;
  double wall_ns;
  double span_ns;  ///< from the first to the last GPU work, the mean of its GPUs
};

// Recorded natively there is one region, which begins with the program and ends with it; in files
// of others there is none.
std::optional<Whole> whole_program(const model::Report& report) {
  const bool region = model::is_program(report) && report.regions.front().occurrences == 1;
  if (!region && (!report.regions.empty() || report.run.duration_ns <= 0))
    return std::nullopt;
  const auto& gpu = region ? report.regions.front().gpu : report.total;
  const double wall = region ? report.regions.front().wall.inclusive_ns : report.run.duration_ns;
  if (!gpu || gpu->partial || !(gpu->span_ns > 0))
    return std::nullopt;
  const auto devices = static_cast<double>(std::max<std::size_t>(1, report.devices.size()));
  return Whole{&*gpu, wall, std::min(gpu->span_ns / devices, wall)};
}

std::optional<Settled> settled_of(const Case& known, std::size_t row) {
  const model::Region& region = known.region(row);
  if (!region.gpu || !region.steady || !region.steady->busy_share ||
      region.steady->occurrences <= 0)
    return std::nullopt;
  if (region.gpu->partial && region.gpu->recorded_occurrences <= 0)
    return std::nullopt;
  const model::GpuWork& gpu = *region.gpu;
  if (gpu.kernels <= 0 && gpu.copies <= 0 && gpu.graph_launches <= 0)
    return std::nullopt;
  Settled out;
  out.busy_share = *region.steady->busy_share;
  out.each_ns = region.steady->wall_ns.median;
  out.wall_ns = region.steady->wall_ns.mean *
                static_cast<double>(std::max(region.occurrences - region.steady->left_out,
                                             region.steady->occurrences));
  out.idle_ns = std::min(known.gpu_idle_ns(),
                         out.wall_ns * std::max(0.0, 1 - out.busy_share) / known.side_by_side(row));
  if (const auto whole =
          whole_program(known.report())) {  // before and behind it nothing waits for the CPU
    out.busy_share = std::min(1.0, gpu.busy_ns / gpu.span_ns);
    out.each_ns = out.wall_ns = whole->span_ns;
    out.idle_ns = std::min(known.gpu_idle_ns(), whole->span_ns * (1 - out.busy_share));
  }
  const auto recorded =
      static_cast<double>(gpu.partial ? gpu.recorded_occurrences : region.occurrences);
  if (recorded > 0 && gpu.kernels > 0)
    out.kernels_each = static_cast<double>(gpu.kernels) / recorded;
  return out;
}

bool settles(const model::Region& region) {
  return region.steady->left_out > 0;
}

}  // namespace

void find_waits_for_cpu(const Case& known, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const auto settled = settled_of(known, row);
    return settled && settled->busy_share < kGpuIdle ? settled->idle_ns : 0;
  };
  for (const std::size_t row : known.worst(saves)) {
    const Settled settled = *settled_of(known, row);
    if (!known.matters(settled.idle_ns))
      continue;
    const model::Region& region = known.region(row);
    const model::GpuWork& gpu = *region.gpu;
    const double kernels = std::max(1.0, static_cast<double>(gpu.kernels));
    const double launching = gpu.launch_ns / region.wall.inclusive_ns,
                 each = gpu.launch_ns / kernels;
    const double kernel = gpu.kernel_ns / kernels;
    // Launches wait for the GPU nearly as long as their calls take; where not, a few calls loaded
    // code or allocated.
    const double latency = gpu.launch_latency_ns ? gpu.launch_latency_ns->median : 0;
    const bool alike = !(latency > 0) || each < kFewLong * latency;
    const bool launch_bound = !gpu.partial && gpu.graph_launches <= 0 &&
                              settled.kernels_each >= kManyKernels && launching >= kLaunching &&
                              kernel < each && alike;
    const std::string busy = fmt::format("the GPU is busy {} of {}{}",
                                         share_text(settled.busy_share),
                                         format_ns(settled.each_ns),
                                         region.occurrences <= 1 ? ""
                                         : settles(region)       ? " per instance in steady state"
                                                                 : " per instance");
    model::Verdict verdict =
        launch_bound ? known.about("launch_bound",
                                   row,
                                   fmt::format("launch-bound: a kernel takes {}, its launch {}; {}",
                                               format_ns(kernel),
                                               format_ns(each),
                                               busy),
                                   settled.idle_ns)
                     : known.about("waits_for_cpu", row, "CPU-bound: " + busy, settled.idle_ns);
    if (const std::string causes = cpu_causes(region, known.report().run); !causes.empty()) {
      verdict.text += (settles(region) ? ". CPU, with warm-up: " : ". CPU: ") +
                      causes;  // samples know no instances
      verdict.next = known.show("--cpu " + base::shell_quote(model::path_text(region)));
    }
    verdict.evidence = {{"gpu_busy_share", settled.busy_share},
                        {"wall_ns.median", region.steady->wall_ns.median},
                        {"wall_ns.p95", region.steady->wall_ns.p95},
                        {"occurrences", static_cast<double>(region.steady->occurrences)}};
    if (!known.report().kernels_chosen) {
      verdict.evidence["kernels_per_occurrence"] = settled.kernels_each;
      if (settled.kernels_each > 0)
        verdict.evidence["ns_per_kernel"] = settled.each_ns / settled.kernels_each;
    }
    if (!std::isnan(gpu.launch_ns) && gpu.kernels > 0 && !gpu.partial) {
      verdict.evidence["launch_call_ns"] = each;
      verdict.evidence["kernel_ns"] = kernel;
    }
    if (region.cpu)
      for (const model::CpuPart* part :
           {&region.cpu->python, &region.cpu->native, &region.cpu->cuda, &region.cpu->waiting})
        verdict.evidence["cpu_" + part->kind + "_share"] = part->ns / region.cpu->whole_ns();
    if (verdict.next.empty())
      verdict.next = known.show("-f perfetto -o trace.pftrace");
    out.push_back(std::move(verdict));
  }
}

void find_start_up(const Case& known, std::vector<model::Verdict>& out) {
  const auto whole = whole_program(known.report());
  if (!whole)
    return;
  const double share = 1 - whole->span_ns / whole->wall_ns;
  if (share < kStartUp)
    return;
  std::string text = fmt::format("start-up and exit are {} of the run: all GPU work is within {}",
                                 share_text(share),
                                 format_ns(whole->span_ns));
  model::Verdict verdict = known.rows() > 0
                               ? known.about("start_up", 0, std::move(text), std::nullopt)
                               : known.about_run("start_up", std::move(text), std::nullopt);
  verdict.evidence = {{"gpu_span_ns", whole->span_ns},
                      {"gpu_busy_ns", whole->gpu->busy_ns},
                      {"start_share", share}};
  if (known.rows() > 0) {
    const model::Region& program = known.region(0);
    if (const std::string causes = cpu_causes(program, known.report().run); !causes.empty())
      verdict.text += ". CPU: " + causes;
    verdict.next = known.show("--cpu " + base::shell_quote(model::path_text(program)));
  }
  out.push_back(std::move(verdict));
}

void find_synchronization(const Case& known, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const auto settled = settled_of(known, row);
    const model::Region& region = known.region(row);
    if (!settled || region.gpu->partial || !(region.gpu->sync_ns > 0))
      return 0.0;
    const double waiting = region.gpu->sync_ns / known.side_by_side(row);
    // Waiting for work that runs costs nothing; the GPU's gaps are what could be filled.
    const double idle =
        region.wall.inclusive_ns / known.side_by_side(row) * std::max(0.0, 1 - settled->busy_share);
    const bool much = region.gpu->sync_ns >= kSynchronizing * region.wall.inclusive_ns;
    return much && settled->busy_share < kGpuFull ? std::min(waiting, idle) : 0.0;
  };
  for (const std::size_t row : known.worst(saves, 1)) {
    const double most = saves(row);
    if (!known.matters(most))
      continue;
    const model::Region& region = known.region(row);
    const double share = region.gpu->sync_ns / region.wall.inclusive_ns;
    model::Verdict verdict = known.about(
        "synchronization",
        row,
        fmt::format(
            "{} block {} ({}); the GPU idles after each",
            base::counted(static_cast<std::uint64_t>(std::max<std::int64_t>(region.gpu->syncs, 0)),
                          "synchronization"),
            format_ns(region.gpu->sync_ns),
            share_text(share)),
        most);
    verdict.evidence = {{"sync_ns", region.gpu->sync_ns},
                        {"syncs", static_cast<double>(region.gpu->syncs)},
                        {"sync_share", share},
                        {"gpu_busy_share", *region.steady->busy_share}};
    if (region.occurrences > 0)
      verdict.evidence["syncs_per_occurrence"] =
          static_cast<double>(region.gpu->syncs) / static_cast<double>(region.occurrences);
    verdict.next = known.show("-f perfetto -o trace.pftrace");
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

void find_copies(const Case& known, std::vector<model::Verdict>& out) {
  const auto alone_ns = [](const model::GpuWork& gpu) {
    return gpu.copies > 0 ? copies_alone_ns(gpu) : 0.0;
  };
  const auto much = [&](const model::GpuWork& gpu) {
    const double alone = alone_ns(gpu);
    if (alone <= 0 || alone < kCopying * gpu.busy_ns)
      return false;
    return gpu.overlap_ns < kHidden * (alone + gpu.overlap_ns);
  };
  const auto say = [&](model::Verdict verdict, const model::GpuWork& gpu) {
    const std::string rate = base::format_si(gpu.copy_bytes / (gpu.copy_ns / 1e9), "B/s");
    verdict.text = fmt::format("copies: {} overlapped with kernels; {} of {} take {} at {}",
                               share_text(gpu.overlap_ns / (alone_ns(gpu) + gpu.overlap_ns)),
                               base::format_count(gpu.copies),
                               base::format_bytes(gpu.copy_bytes),
                               format_ns(gpu.copy_ns),
                               rate);
    verdict.evidence = {{"copies", static_cast<double>(gpu.copies)},
                        {"copy_bytes", gpu.copy_bytes},
                        {"copy_ns", gpu.copy_ns},
                        {"overlap_ns", gpu.overlap_ns},
                        {"bytes_per_copy", gpu.copy_bytes / static_cast<double>(gpu.copies)}};
    double to_host = 0;
    for (const model::CopyRow& row : gpu.copies_by_kind)
      if (row.kind == model::CopyKind::kDeviceToHost)
        to_host += row.total_ns;
    verdict.evidence["to_host_share"] = to_host / gpu.copy_ns;
    verdict.next = known.show("-f perfetto -o trace.pftrace");
    out.push_back(std::move(verdict));
  };
  const auto saves = [&](std::size_t row) {
    const auto& gpu = known.region(row).gpu;
    return gpu && known.has_timeline() && much(*gpu) ? alone_ns(*gpu) / known.gpus_side_by_side(row)
                                                     : 0.0;
  };
  for (const std::size_t row : known.worst(saves, 1)) {
    if (!known.matters(saves(row)))
      continue;
    say(known.about("copies", row, "", saves(row)), *known.region(row).gpu);
  }
  const auto& outside = known.report().unattributed;
  if (!outside || !known.has_timeline() || !much(*outside))
    return;
  if (alone_ns(*outside) < kMattersOfRun * known.whole_ns())
    return;
  model::Verdict verdict = known.about_run("copies", "", alone_ns(*outside));
  if (known.rows() > 0)
    verdict.path = "outside ranges";
  say(std::move(verdict), *outside);
}

void find_cuda_calls(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  // Recordings of calls alone: what ran on the GPU is not known.
  if (!report.total || report.total->kernels > 0 || report.total->busy_ns > 0 ||
      !(report.total->sync_ns > 0))
    return;
  const double share =
      report.run.duration_ns > 0 ? report.total->sync_ns / report.run.duration_ns : 0;
  if (share < kSynchronizing)
    return;
  model::Verdict verdict = known.about_run(
      "cuda_calls",
      fmt::format(
          "{} wait {} for the GPU ({} of the run)",
          base::counted(static_cast<std::uint64_t>(std::max<std::int64_t>(report.total->syncs, 0)),
                        "CUDA call"),
          format_ns(report.total->sync_ns),
          share_text(share)),
      report.total->sync_ns);
  verdict.evidence = {{"sync_ns", report.total->sync_ns},
                      {"syncs", static_cast<double>(report.total->syncs)}};
  out.push_back(std::move(verdict));
}

void find_idle_gpu(const Case& known, std::vector<model::Verdict>& out) {
  auto share = known.gpu_busy_share();
  if (!share)
    return;
  const auto explains = [&](const model::Verdict& verdict) {
    return verdict.kind == "waits_for_cpu" || verdict.kind == "launch_bound" ||
           verdict.kind == "synchronization" || verdict.kind == "outside_ranges" ||
           (verdict.kind == "start_up" && known.rows() > 0) || verdict.kind == "hot_region" ||
           verdict.kind == "warm_up";
  };
  if (std::any_of(out.begin(), out.end(), explains))
    return;
  double wall = known.report().run.duration_ns;
  const double busy = *share * wall;
  const bool inside =
      std::any_of(out.begin(), out.end(), [](const auto& one) { return one.kind == "start_up"; });
  if (inside) {  // start-up is told: the rest is from the first to the last GPU work
    wall = whole_program(known.report())->span_ns;
    share = std::min(1.0, busy / wall);
  }
  if (*share >= kGpuIdle)
    return;
  model::Verdict verdict =
      known.about_run("idle_gpu",
                      fmt::format("the GPU is idle {} of the {}: busy {} of {}",
                                  share_text(1 - *share),
                                  inside ? "time from its first to its last work" : "run",
                                  format_ns(busy),
                                  format_ns(wall)),
                      wall - busy);
  verdict.evidence = {{"gpu_busy_share", *share}};
  verdict.next = known.show("-f perfetto -o trace.pftrace");
  out.push_back(std::move(verdict));
}

}  // namespace rangescope::analyze
