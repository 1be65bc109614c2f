#include "model/loss_kinds.hpp"

#include <algorithm>
#include <vector>

#include "base/embedded.hpp"

RANGESCOPE_EMBED(loss_kinds, RANGESCOPE_TSV);

namespace rangescope::model {

std::span<const LossEntry> loss_table() {
  static const auto table = [] {
    constexpr std::string_view kSeverities[] = {"info", "warning", "error"};
    constexpr std::string_view kAreas[] = {
        "program", "capture", "gpu", "cpu", "counters", "file", "nsys", "ncu", "analysis", "stage"};
    std::vector<LossEntry> out;
    for (const auto& [id, severity, area, meaning, cure] : base::rows<5>(rangescope_loss_kinds))
      out.push_back({id,
                     static_cast<Severity>(base::place_of(severity, kSeverities)),
                     static_cast<LossArea>(base::place_of(area, kAreas)),
                     meaning,
                     cure});
    return out;
  }();
  return table;
}

const LossEntry& loss_entry(std::string_view id) {
  const auto table = loss_table();
  const auto found = std::ranges::find(table, id, &LossEntry::id);
  return found != table.end() ? *found : table.back();
}

}  // namespace rangescope::model
