#include "analyze/cures/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/cures.hpp"
#include "base/embedded.hpp"
#include "base/units.hpp"

RANGESCOPE_EMBED(cures_catalog, RANGESCOPE_TSV);

namespace rangescope::analyze::cures {

const std::vector<Cure>& catalog() {
  static const std::vector<Cure> kCatalog = [] {
    std::vector<Cure> cures;
    for (const auto& [id, done, attempt, applies, not_when, reason, source] :
         base::rows<7>(rangescope_cures_catalog))
      cures.push_back({id, done, attempt, applies, not_when, reason, source});
    return cures;
  }();
  return kCatalog;
}

const Cure& cure_of(std::string_view id) {
  return *std::ranges::find(catalog(), id, &Cure::id);
}

std::string cures_page() {
  std::string page = fmt::format(R"(# Cures

For readers of a report whose first lines say what a fix saves: each cure, when it applies, what to
try, and why. A cure is proposed where the recording shows its pattern; the saving is that of the
recording's dependence graph, changed and replayed, with its interval. Savings shown together are
those of all changes made one after the other. After all of them a loop takes as long as the work of
its busiest stream at least. A recording that does not replay within 10 % gives bounds ("at most");
of one with more than {} calls and works, a part in the middle is replayed, and its savings are
scaled to the whole. [Verdicts](verdicts.md) has the other lines.

An *instance* is one step of the loop: a range of the program that occurs again and again. Where a
range only launches, a step lasts until the next one begins. A program without ranges has steps too,
where it repeats itself: from one call of its outermost module to the next, or from a kernel behind
which the same sequence comes again. The first instances that take more than twice as long as most
are warm-up and left out, with shorter ones between them where long ones become rare later; at most
a quarter of all.
)",
                                 base::format_count(Limits{}.most_operations));
  for (const Cure& cure : catalog()) {
    page +=
        fmt::format("\n## {}\n\n- Try: {}\n- Applies: {}\n- Not: {}\n- Why: {} ([source]({}))\n",
                    cure.id,
                    cure.attempt,
                    cure.applies,
                    cure.not_when,
                    cure.reason,
                    cure.source);
  }
  return page;
}

}  // namespace rangescope::analyze::cures
