#include "analyze/counters/places.hpp"

#include "analyze/counters/measurements.hpp"
#include "analyze/tree/contexts.hpp"
#include "analyze/tree/groups.hpp"
#include "analyze/tree/regions.hpp"
#include "analyze/tree/select.hpp"
#include "analyze/tree/sets.hpp"
#include "analyze/tree/tree.hpp"

namespace rangescope::analyze {

model::Places find_places(const model::Session& session, const Options& options) {
  model::Places places;
  if (session.kernels.empty())
    return places;
  Tree tree = build_tree(session, options.domains, options.threads);
  Contexts contexts = build_contexts(session, tree, options);
  add_replays(session, options.domains, tree, contexts);
  if (session.ranges.empty())
    add_measured_cells(session, options.domains, tree);
  link_nodes(tree, session);
  std::vector<std::string> notes;
  const auto selected = select_nodes(tree, session, options, notes);
  const auto chosen = select_kernels(session, options, notes);
  if (!selected || !chosen)
    return places;  // analyze() has refused it
  const std::vector<RegionKey> keys = plan_regions(tree, session, options, *selected);
  const Sets sets = build_sets(tree, contexts, keys);
  for (std::size_t i = 0; i < session.kernels.size(); ++i) {
    const model::Kernel& kernel = session.kernels[i];
    const bool is_chosen = kernel.name < chosen->size() && (*chosen)[kernel.name] != 0;
    std::uint32_t& set = places.of_kernel.emplace_back(kNone);
    if (!is_chosen)
      continue;
    const std::uint32_t context =
        context_of(session, contexts, contexts.of_kernel, i, kernel.launch, kernel.stream);
    const bool has_launch = launched(session, kernel.launch, kernel.stream);
    set = has_launch ? sets.of_context[context] : Sets::kNoLaunch;
  }
  for (std::uint32_t set = 0; set < sets.size(); ++set)
    for (const SetEntry& entry : sets.of(set))
      if (entry.region < keys.size())
        places.holders.push_back({set, entry.region, entry.exclusive});
  return places;
}

}  // namespace rangescope::analyze
