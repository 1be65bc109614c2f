#include "analyze/tree/sets.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace rangescope::analyze {
namespace {

/// Expands lists of innermost cells into the regions that contain them.
class Expander {
 public:
  Expander(const Tree& tree, const std::vector<RegionKey>& keys, Sets& sets)
      : tree_(tree), sets_(sets) {
    regions_of_cell_.resize(tree.cells.size(), {kNone, kNone, kNone});
    for (std::uint32_t r = 0; r < keys.size(); ++r) {
      const Scope scope = scope_of(keys[r]);
      for (std::size_t i = keys[r].first; i < keys[r].last; ++i)
        regions_of_cell_[tree.node_cells[i]][scope] = r;
    }
  }

  /// `inner`: cell | kInherited.
  void add(std::span<const std::uint32_t> inner) {
    collect_cells(inner);
    collect_parents();
    found_.clear();
    for (const CellAround& around : cells_) {
      for (const Scope scope : {kAggregate, kProcess, kThread}) {
        const std::uint32_t region = regions_of_cell_[around.cell][scope];
        if (region != kNone)
          found_.push_back({region, !is_around_another(around.cell, scope), around.inherited});
      }
    }
    std::sort(found_.begin(), found_.end(), [](const SetEntry& a, const SetEntry& b) {
      return std::pair(a.region, a.inherited) < std::pair(b.region, b.inherited);
    });
    found_.erase(std::unique(found_.begin(),
                             found_.end(),
                             [](const auto& a, const auto& b) { return a.region == b.region; }),
                 found_.end());
    found_.push_back({sets_.total_region, false, false});
    sets_.entries.insert(sets_.entries.end(), found_.begin(), found_.end());
    sets_.begin.push_back(static_cast<std::uint32_t>(sets_.entries.size()));
  }

 private:
  enum Scope : std::size_t { kAggregate, kProcess, kThread };

  /// A cell that contains one of the innermost ones, or is one.
  struct CellAround {
    std::uint32_t cell;
    bool inherited;
    auto operator<=>(const CellAround&) const = default;
  };

  static Scope scope_of(const RegionKey& key) {
    if (key.thread != kNone)
      return kThread;
    if (key.process != kNone)
      return kProcess;
    return kAggregate;
  }

  /// Fills `cells_`: each cell once, as inherited only where it is reached in no other way.
  void collect_cells(std::span<const std::uint32_t> inner) {
    cells_.clear();
    for (const std::uint32_t entry : inner) {
      const bool inherited = (entry & kInherited) != 0;
      for (std::uint32_t c = entry & ~kInherited; c != kNone; c = tree_.cells[c].parent)
        cells_.push_back({c, inherited});
    }
    std::sort(cells_.begin(), cells_.end());
    const auto is_same_cell = [](const CellAround& a, const CellAround& b) {
      return a.cell == b.cell;
    };
    cells_.erase(std::unique(cells_.begin(), cells_.end(), is_same_cell), cells_.end());
  }

  void collect_parents() {
    parent_nodes_.clear();
    parent_cells_.clear();
    for (const CellAround& around : cells_) {
      const std::uint32_t parent = tree_.cells[around.cell].parent;
      if (parent == kNone)
        continue;
      parent_cells_.push_back(parent);
      parent_nodes_.push_back(tree_.cells[parent].node);
    }
    std::sort(parent_nodes_.begin(), parent_nodes_.end());
    std::sort(parent_cells_.begin(), parent_cells_.end());
  }

  /// Does the region of `cell` in this scope contain another one of `cells_`?
  [[nodiscard]] bool is_around_another(std::uint32_t cell, Scope scope) const {
    if (scope == kThread)
      return std::binary_search(parent_cells_.begin(), parent_cells_.end(), cell);
    const std::uint32_t node = tree_.cells[cell].node;
    return std::binary_search(parent_nodes_.begin(), parent_nodes_.end(), node);
  }

  const Tree& tree_;
  Sets& sets_;
  std::vector<std::array<std::uint32_t, 3>> regions_of_cell_;  ///< by Scope
  std::vector<CellAround> cells_;
  std::vector<std::uint32_t> parent_nodes_, parent_cells_;
  std::vector<SetEntry> found_;
};

}  // namespace

Sets build_sets(const Tree& tree, const Contexts& contexts, const std::vector<RegionKey>& keys) {
  Sets sets;
  sets.total_region = static_cast<std::uint32_t>(keys.size());
  sets.unattributed_region = sets.total_region + 1;
  sets.regions = keys.size() + 2;
  for (int i = 0; i < 2; ++i) {  // kUnattributed and kNoLaunch
    sets.entries.push_back({sets.total_region, false, false});
    sets.entries.push_back({sets.unattributed_region, true, false});
    sets.begin.push_back(static_cast<std::uint32_t>(sets.entries.size()));
  }

  Expander expander(tree, keys, sets);
  sets.of_context.assign(contexts.size(), Sets::kUnattributed);
  std::vector<std::uint32_t> of_cell(tree.cells.size(), kNone);  // most contexts hold one cell
  std::unordered_map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> inner;
  std::string key;
  for (std::uint32_t c = 1; c < contexts.size(); ++c) {
    inner.clear();
    for (const std::uint32_t entry : contexts.of(c))
      inner.push_back(tree.cell[entry & ~kInherited] | (entry & kInherited));
    std::sort(inner.begin(), inner.end());
    inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
    std::uint32_t* set = nullptr;
    if (inner.size() == 1 && (inner[0] & kInherited) == 0) {
      set = &of_cell[inner[0]];
    } else {
      key.assign(reinterpret_cast<const char*>(inner.data()), inner.size() * sizeof(std::uint32_t));
      set = &known.emplace(key, kNone).first->second;
    }
    if (*set == kNone) {
      *set = static_cast<std::uint32_t>(sets.size());
      expander.add(inner);
    }
    sets.of_context[c] = *set;
  }
  return sets;
}

}  // namespace rangescope::analyze
