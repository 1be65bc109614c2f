// The GPU has work: what bounds it, what warps of its kernels wait for, and how much of the work
// was needed.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/counters/roofline.hpp"
#include "analyze/counters/useful.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;

/// GPU busy time of all occurrences; 0 where nobody knows.
double busy_total(const Case& known, std::size_t row) {
  const model::Region& region = known.region(row);
  if (region.gpu && !region.gpu->partial && region.gpu->busy_ns > 0)
    return region.gpu->busy_ns;
  const auto each = busy_per_occurrence_ns(region);
  if (each && region.occurrences > 0)
    return *each * static_cast<double>(region.occurrences);
  return kernel_ns(region);
}

/// " (L2)": the level of memory that is nearest to its peak.
std::string level_of(const model::Bound& bound) {
  if (bound.kind == "memory: system")
    return {};
  const std::size_t colon = bound.kind.find(": ");
  return colon == std::string::npos ? " (DRAM)" : " (" + bound.kind.substr(colon + 2) + ")";
}

/// "limiter unknown: collect memory traffic, SM throughput or executed FLOPs"
std::string unknown_text(const model::Bound& bound) {
  constexpr std::string_view kMissing = "not measured: ";
  const bool missing = bound.reason.starts_with(kMissing);
  return missing ? "limiter unknown: collect " + bound.reason.substr(kMissing.size())
                 : "limiter unknown: " + bound.reason;
}

/// Busy time that is above the roof: what a kernel that reached its peak would not need.
double above_roof(const Case& known, std::size_t row) {
  const auto& bound = known.region(row).bound;
  if (!bound || bound_kind(*bound).empty() || !bound->memory || !bound->compute)
    return 0;
  return busy_total(known, row) / known.gpus_side_by_side(row) *
         std::max(0.0, 1 - std::max(*bound->memory, *bound->compute));
}

/// Counters of a range as a whole that was measured without a timeline: its time holds the gaps
/// between kernels.
bool hardly_used(const model::Region& region) {
  const bool timeline = region.gpu && region.gpu->busy_ns_per_occurrence.median > 0;
  return !timeline && std::max(*region.bound->memory, *region.bound->compute) < kHardlyUsed;
}

void add_counters(const model::Region& region, model::Verdict& verdict) {
  for (const char* name : {"launch__waves_per_multiprocessor",
                           "dram_bytes_per_s",
                           "occupancy",
                           "sm_active",
                           "tensor_active",
                           "dram_throughput",
                           "sm_throughput",
                           "memory_throughput"}) {
    if (const auto* metric = model::known_metric(region.metrics, name))
      verdict.evidence[name] = metric->value;
  }
}

/// What warps wait for, by the counter that shows it; else which counters would.
std::string waits_text(const model::Region& region) {
  constexpr std::string_view kStall = "stall_";
  const std::pair<const std::string, model::Metric>* most = nullptr;
  for (const auto& each : region.metrics) {
    const bool waits = each.first.starts_with(kStall) && each.first != "stall_selected" &&
                       each.second.absent.empty();
    if (waits && (most == nullptr || each.second.value > most->second.value))
      most = &each;
  }
  if (most != nullptr) {
    std::string name = most->first.substr(kStall.size());
    std::replace(name.begin(), name.end(), '_', ' ');
    return fmt::format("warps wait mostly for {} ({:.1f} per issue)", name, most->second.value);
  }
  const auto* occupancy = model::known_metric(region.metrics, "occupancy");
  if (occupancy != nullptr && occupancy->value < kOccupied)
    return "occupancy " + share_text(occupancy->value);
  return {};
}

void say_bound(const Case& known, std::size_t row, std::vector<model::Verdict>& out) {
  const model::Region& region = known.region(row);
  const model::Bound& bound = *region.bound;
  const std::string kind = bound_kind(bound) == "latency_bound" && hardly_used(region)
                               ? "hardly_used"
                               : bound_kind(bound);
  const std::string shares = bound_shares(bound);
  std::string text, metrics;
  if (kind == "memory_bound") {
    text = fmt::format("memory-bound{}: {}", level_of(bound), shares);
    metrics = "memory,cache";
  } else if (kind == "compute_bound") {
    text =
        fmt::format("compute-bound ({}): {}", bound.kind.substr(bound.kind.find(' ') + 1), shares);
    metrics = bound.kind.find("tensor") != std::string::npos ? "tensor" : "instructions";
  } else if (kind == "balanced") {
    text = fmt::format("memory and compute alike limit it: {}", shares);
    metrics = "memory,instructions";
  } else if (hardly_used(region)) {
    text = fmt::format("hardly uses the GPU: {}, gaps included", shares);
    metrics = "occupancy";
  } else {
    const std::string waits = waits_text(region);
    text = fmt::format("latency-bound: {}{}{}", shares, waits.empty() ? "" : "; ", waits);
    metrics = "stalls,occupancy";
  }
  model::Verdict verdict = known.about(kind, row, std::move(text), above_roof(known, row));
  verdict.evidence = {{"memory_share", *bound.memory}, {"compute_share", *bound.compute}};
  verdict.evidence["gpu_busy_ns"] = busy_total(known, row);
  add_counters(region, verdict);
  verdict.next = known.measure_again(metrics, &region);
  out.push_back(std::move(verdict));
}

double saving(const model::KernelRow& row) {
  return row.stalls && row.stalls->saves_ns ? *row.stalls->saves_ns : 0;
}

/// The kernel whose most frequent stall costs a region most; null where none was sampled.
const model::KernelRow* worst_kernel(const model::Region& region) {
  const model::KernelRow* worst = nullptr;
  if (region.gpu)
    for (const model::KernelRow& row : region.gpu->top_kernels)
      if (saving(row) > (worst == nullptr ? 0 : saving(*worst)))
        worst = &row;
  return worst;
}

/// " at kernel.cu:112": where most of its samples of that stall are.
std::string place_of(const model::KernelRow& kernel, const std::string& reason) {
  const model::StallLine* most = nullptr;
  for (const model::StallLine& line : kernel.stalls->lines)
    if (line.reason == reason && (most == nullptr || line.reason_share > most->reason_share))
      most = &line;
  if (most == nullptr)
    return {};
  return " at " + base::printable(model::place_text(*most));
}

}  // namespace

void find_bounds(const Case& known, std::vector<model::Verdict>& out) {
  bool any = false;
  for (const std::size_t row :
       known.worst([&](std::size_t row) { return above_roof(known, row); })) {
    say_bound(known, row, out);
    any = true;
  }
  if (any)
    return;
  // The GPU is well used, or counters were read and do not tell: say what would.
  const auto full = [&](std::size_t row) {
    const model::Region& region = known.region(row);
    const double busy = busy_total(known, row);
    // Kernels of NCCL that wait for another rank keep the GPU, but not at work: that is the
    // straggler's.
    const double waits = region.communication ? region.communication->wait_ns : 0;
    const double copies = region.gpu ? copies_alone_ns(*region.gpu) : 0;  // judged by themselves
    const double others = std::min(waits + copies, busy);
    const double share =
        region.steady && busy > 0 ? region.steady->busy_share.value_or(0) * (1 - others / busy) : 0;
    return share >= kGpuFull ? (busy - others) / known.gpus_side_by_side(row) : 0.0;
  };
  for (const std::size_t row : known.worst(full, 1)) {
    if (!known.matters(full(row)))
      continue;
    const model::Region& region = known.region(row);
    const double busy = *region.steady->busy_share;
    // Kernels of NCCL wait for the other ranks: counters of this GPU do not say for whom.
    const bool nccl = region.gpu && region.gpu->nccl_ns > region.gpu->kernel_ns / 2;
    const std::string kernel = known.largest_kernel(row);
    std::string text =
        busy <= 1
            ? fmt::format("GPU-bound: the GPU is busy {} of its time{}",
                          share_text(busy),
                          region.steady->left_out > 0 ? " in steady state" : "")
            : fmt::format("asynchronous: its GPU work takes {:.1f}x its CPU time; GPU-bound", busy);
    if (nccl)
      text += "; NCCL's kernels transfer and wait for the last rank";
    else if (!kernel.empty())
      text += "; largest kernel " + kernel;
    model::Verdict verdict = known.about("gpu_bound", row, text, full(row));
    verdict.evidence = {{"gpu_busy_share", *region.steady->busy_share},
                        {"gpu_busy_ns", busy_total(known, row)}};
    if (!nccl)
      verdict.next = known.measure_again("roofline", &region);
    out.push_back(std::move(verdict));
    return;
  }
  const auto& kernels = known.report().kernel_counters;
  if (std::any_of(kernels.begin(), kernels.end(), [](const auto& kernel) {
        return kernel.bound && kernel.bound->kind != "unknown";
      }))
    return;  // the line of the kernel tells more
  const auto measured = [&](std::size_t row) {
    const model::Region& region = known.region(row);
    const bool unknown = has_counters(region) && region.bound && region.bound->kind == "unknown";
    return unknown ? std::max(busy_total(known, row), 1.0) : 0.0;
  };
  for (const std::size_t row : known.worst(measured, 1)) {
    const model::Region& region = known.region(row);
    model::Verdict verdict =
        known.about("bound_unknown", row, unknown_text(*region.bound), std::nullopt);
    verdict.severity = model::Weight::kNote;
    if (const double busy = busy_total(known, row); busy > 0)
      verdict.evidence["gpu_busy_ns"] = busy;
    verdict.next = known.measure_again("roofline,speed_of_light", &region);
    out.push_back(std::move(verdict));
  }
}

void find_padding(const Case& known, std::vector<model::Verdict>& out) {
  const auto executed = [](const model::Region& region) {
    double flop = 0;
    for (const auto& [name, metric] : region.metrics)
      if (name.starts_with("flop_") && metric.unit == "FLOP" && metric.absent.empty())
        flop += metric.value;
    return flop;
  };
  const auto saves = [&](std::size_t row) {
    const model::Region& region = known.region(row);
    if (!region.utilization || region.utilization->useful_flop.value_or(0) <= 0)
      return 0.0;
    const double done = executed(region), useful = *region.utilization->useful_flop;
    if (done < kPadded * useful)
      return 0.0;
    return busy_total(known, row) / known.gpus_side_by_side(row) * (1 - useful / done);
  };
  for (const std::size_t row : known.worst(saves, 1)) {
    const model::Region& region = known.region(row);
    const double done = executed(region), useful = *region.utilization->useful_flop;
    model::Verdict verdict =
        known.about("padding",
                    row,
                    fmt::format("executes {:.1f}x the FLOPs it needs: {} for {}",
                                done / useful,
                                base::format_si(done, "FLOP"),
                                base::format_si(useful, "FLOP")),
                    saves(row));
    verdict.evidence = {{"executed_flop", done}, {"useful_flop", useful}};
    verdict.next = known.measure_again("tensor", &region);
    out.push_back(std::move(verdict));
  }
}

void find_stalls(const Case& known, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const model::KernelRow* worst = worst_kernel(known.region(row));
    const double ns = worst == nullptr ? 0 : saving(*worst) / known.gpus_side_by_side(row);
    return known.matters(ns) ? ns : 0;
  };
  for (const std::size_t row : known.worst(saves)) {
    const model::KernelRow& kernel = *worst_kernel(known.region(row));
    const model::StallShare& top = *model::top_stall(*kernel.stalls);
    const std::string& name = kernel.label.empty() ? kernel.short_name : kernel.label;
    model::Verdict verdict = known.about("stalls",
                                         row,
                                         fmt::format("{} {}{}, in {}",
                                                     share_text(top.share),
                                                     top.reason,
                                                     place_of(kernel, top.reason),
                                                     base::elide(base::printable(name), 48)),
                                         saves(row));
    verdict.severity = model::Weight::kWarning;
    verdict.evidence = {{"stall_share", top.share},
                        {"samples", static_cast<double>(kernel.stalls->samples)},
                        {"kernel_ns", kernel.total_ns}};
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
