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

namespace {

/// "thread 4 of its pool", "the GIL, which thread 4 has"
std::string awaited_text(const model::CpuHolder& holder) {
  if (holder.kind == "pool")
    return fmt::format("thread {} of its pool", holder.thread);
  const std::string_view lock = holder.kind == "GIL" ? "the GIL" : "a lock";
  return fmt::format("{}, which thread {} has", lock, holder.thread);
}

/// "12.0 % of its time waits for a lock, which thread 4 has in load, running read_file"
std::string held_text(const model::CpuHolder& holder, const model::CpuWork& cpu) {
  constexpr std::size_t kLongName = 80;  // as of the hottest function
  const std::string share = base::format_share(holder.ns / cpu.whole_ns());
  std::string text = share + " of its time waits for " + awaited_text(holder);
  if (!holder.range.empty())
    text += " in " + holder.range;
  if (holder.doing.size() > kLongName)
    text += ", running " + folded_kernel(holder.doing);
  else if (!holder.doing.empty())
    text += ", running " + holder.doing;
  return text;
}

/// The thread that a region waits for most; null where the waits are short, or where threads take
/// turns: then each holds the lock about as long as the others, and none of them is the cause.
const model::CpuHolder* main_holder(const model::Region& region) {
  constexpr double kMostOfKind = 0.6;
  if (!region.cpu || region.cpu->holders.empty())
    return nullptr;
  const model::CpuHolder& longest = region.cpu->holders.front();
  double of_kind_ns = 0;
  for (const model::CpuHolder& holder : region.cpu->holders)
    if (holder.kind == longest.kind)
      of_kind_ns += holder.ns;
  const bool is_long = longest.ns >= kHeld * region.cpu->whole_ns();
  const bool is_cause = is_long && longest.ns > kMostOfKind * of_kind_ns;
  return is_cause ? &longest : nullptr;
}

}  // namespace

void find_held(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const model::CpuHolder* holder = main_holder(facts.region(row));
    return holder == nullptr ? 0 : holder->ns / facts.side_by_side(row);
  };
  for (const std::size_t row : facts.worst(saves)) {
    const model::Region& region = facts.region(row);
    const model::CpuHolder* holder = main_holder(region);
    if (holder == nullptr || !facts.matters(saves(row)))
      continue;
    const std::string text = base::printable(held_text(*holder, *region.cpu));
    model::Verdict verdict = facts.about("held_by_another", row, text, saves(row));
    verdict.evidence = {{"waiting_ns", holder->ns}, {"wall_ns", region.cpu->whole_ns()}};
    verdict.next = facts.show("--cpu " + base::shell_quote(model::path_text(region)));
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
