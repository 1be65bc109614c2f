// Why warps of a range's kernels wait, and at which line: by samples of the program counter.
#include <fmt/format.h>

#include "analyze/verdict/rule.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

double saving(const model::KernelRow& row) {
  return row.stalls && row.stalls->saves_ns ? *row.stalls->saves_ns : 0;
}

/// The kernel whose most frequent stall costs a region most; null where none was sampled.
const model::KernelRow* worst_kernel(const model::Region& region) {
  const model::KernelRow* worst = nullptr;
  if (region.gpu)
    for (const model::KernelRow& row : region.gpu->top_kernels)
      if (saving(row) > (worst == nullptr ? 0 : saving(*worst))) worst = &row;
  return worst;
}

/// " at kernel.cu:112": where most of its samples of that stall are.
std::string place_of(const model::KernelRow& kernel, const std::string& reason) {
  const model::StallLine* most = nullptr;
  for (const model::StallLine& line : kernel.stalls->lines)
    if (line.reason == reason && (most == nullptr || line.reason_share > most->reason_share)) most = &line;
  if (most == nullptr) return {};
  return " at " + base::printable(model::place_text(*most));
}

}  // namespace

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
    model::Verdict verdict =
        known.about("stalls", row,
                    fmt::format("{} {}{}, in {}", share_text(top.share), top.reason, place_of(kernel, top.reason),
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
