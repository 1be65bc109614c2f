// Who holds what others wait for: the cause of a wait is in another thread than its victim.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/names/kernel_labels.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {

void find_held(const Case& known, std::vector<model::Verdict>& out) {
  const auto most = [&](std::size_t row) -> const model::CpuHolder* {
    const model::Region& region = known.region(row);
    if (!region.cpu || region.cpu->holders.empty())
      return nullptr;
    const model::CpuHolder& holder = region.cpu->holders.front();
    double all = 0;  // threads that take turns have it alike: none of them is the cause
    for (const model::CpuHolder& each : region.cpu->holders)
      all += each.kind == holder.kind ? each.ns : 0;
    return holder.ns >= kHeld * region.cpu->whole_ns() && holder.ns > 0.6 * all ? &holder : nullptr;
  };
  const auto saves = [&](std::size_t row) {
    const model::CpuHolder* holder = most(row);
    return holder == nullptr ? 0 : holder->ns / known.side_by_side(row);
  };
  for (const std::size_t row : known.worst(saves)) {
    const model::CpuHolder* holder = most(row);
    if (holder == nullptr || !known.matters(saves(row)))
      continue;
    const model::Region& region = known.region(row);
    std::string text = fmt::format("{} of its time waits for ",
                                   base::format_share(holder->ns / region.cpu->whole_ns()));
    if (holder->kind == "pool")
      text += fmt::format("thread {} of its pool", holder->thread);
    else
      text += fmt::format(
          "{}, which thread {} has", holder->kind == "GIL" ? "the GIL" : "a lock", holder->thread);
    if (!holder->range.empty())
      text += fmt::format(" in {}", holder->range);
    constexpr std::size_t kLongName = 80;  // as of the hottest function
    if (holder->doing.size() > kLongName)
      text += ", running " + folded_kernel(holder->doing);
    else if (!holder->doing.empty())
      text += ", running " + holder->doing;
    model::Verdict verdict = known.about("held_by_another", row, base::printable(text), saves(row));
    verdict.evidence = {{"waiting_ns", holder->ns}, {"wall_ns", region.cpu->whole_ns()}};
    verdict.next = known.show("--cpu " + base::shell_quote(model::path_text(region)));
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
