#include "analyze/names/matching.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "analyze/names/printed.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/range_expression.hpp"

namespace rangescope::analyze {
namespace {

using model::DigestRegion;
using Path = std::vector<std::string>;

constexpr std::size_t kMostCandidates = 200;  // each is held against each

bool begins_with(const Path& path, const Path& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

Path parts_of(std::string_view text) {
  constexpr std::string_view kSeparator = " > ";
  Path parts;
  for (std::size_t start = 0;;) {
    const auto end = text.find(kSeparator, start);
    if (end == std::string_view::npos) {
      parts.emplace_back(text.substr(start));
      return parts;
    }
    parts.emplace_back(text.substr(start, end - start));
    start = end + kSeparator.size();
  }
}

/// A name is replaced wherever it occurs; a path with everything below it.
Path renamed(const Path& path,
             const std::map<std::string, std::string>& renames,
             std::set<std::string>& used) {
  Path out = path;
  for (const auto& [from, to] : renames) {
    const Path old = parts_of(from);
    if (old.size() > 1) {
      if (!begins_with(path, old))
        continue;
      const Path fresh = parts_of(to);
      out.assign(fresh.begin(), fresh.end());
      out.insert(out.end(), path.begin() + static_cast<std::ptrdiff_t>(old.size()), path.end());
      used.insert(from);
    } else {
      for (std::string& name : out) {
        if (name != from)
          continue;
        name = to;
        used.insert(from);
      }
    }
  }
  return out;
}

const DigestRegion* any_of(const MatchedRegion& region, std::size_t side) {
  for (const DigestRegion* one : region.of[side]) {
    if (one)
      return one;
  }
  return nullptr;
}

/// Time of a region, summed over the runs of a side.
double inclusive_wall_of_runs(const std::vector<const DigestRegion*>& runs) {
  double wall_ns = 0;
  for (const DigestRegion* run : runs) {
    if (run == nullptr)
      continue;
    const auto found = run->values.find("wall_ns.inclusive");
    if (found != run->values.end())
      wall_ns += found->second;
  }
  return wall_ns;
}

double median_wall(const DigestRegion& region) {
  const auto found = region.values.find("wall_ns.median");
  return found == region.values.end() ? 0 : found->second;
}

bool is_printed_by(std::span<const model::RangeTerm> terms,
                   std::string_view domain,
                   std::span<const std::string_view> path) {
  return std::ranges::any_of(terms, [&](const model::RangeTerm& term) {
    return PrintedPath(term.written).names(domain, path);
  });
}

}  // namespace

bool on_all_sides(const MatchedRegion& region) {
  for (std::size_t side = 0; side < region.of.size(); ++side) {
    if (!any_of(region, side))
      return false;
  }
  return true;
}

base::Result<std::vector<MatchedRegion>> match_regions(
    std::span<const model::Side> sides, const std::map<std::string, std::string>& renames) {
  std::vector<MatchedRegion> out;
  // A range that is named like a row of the run is not that row.
  std::map<std::tuple<bool, std::string, model::RangeKind, Path>, std::size_t> known;
  std::set<std::string> used, names;
  for (std::size_t s = 0; s < sides.size(); ++s) {
    for (std::size_t r = 0; r < sides[s].runs.size(); ++r) {
      for (const DigestRegion& region : sides[s].runs[r].regions) {
        const Path path = s == 0 ? renamed(region.path, renames, used) : region.path;
        if (s == 0) {
          names.insert(base::join(region.path, " > "));
          names.insert(region.path.begin(), region.path.end());
        }
        const std::tuple key(model::is_range(region), region.domain, region.kind, path);
        const auto [at, fresh] = known.try_emplace(key, out.size());
        if (fresh) {
          MatchedRegion& matched = out.emplace_back();
          matched.path = path;
          matched.domain = region.domain;
          matched.kind = region.kind;
          matched.is_whole_run = region.is_whole_run;
          matched.is_outside_ranges = region.is_outside_ranges;
          if (path != region.path)
            matched.renamed_from = model::path_text(region.domain, region.path);
          for (const model::Side& side : sides)
            matched.of.emplace_back(side.runs.size(), nullptr);
        }
        const DigestRegion*& place = out[at->second].of[s][r];
        if (place && !renames.empty())
          return base::fail(base::Code::kUsage,
                            "after renaming, '" + base::printable(base::join(place->path, " > ")) +
                                "' and '" + base::printable(base::join(region.path, " > ")) +
                                "' are one range",
                            "--rename",
                            "Rename to a name that the first side does not have");
        if (!place)
          place = &region;
      }
    }
  }
  for (const auto& [from, to] : renames) {
    if (used.contains(from))
      continue;
    const std::vector<std::string> list(names.begin(), names.end());
    return base::fail(base::Code::kUsage,
                      "the first side has no range '" + base::printable(from) + "'",
                      "--rename",
                      base::did_you_mean(from, list));
  }
  return out;
}

base::Result<void> filter_regions(std::vector<MatchedRegion>& regions,
                                  const model::RangeSelection& ranges,
                                  std::span<const model::RangeTerm> only) {
  std::vector<std::string> seen;
  for (const MatchedRegion& region : regions) {
    if (seen.size() < 12)
      seen.push_back(base::printable(model::path_text(region.domain, region.path)));
  }
  const auto is_chosen = [&](const MatchedRegion& region) {
    const std::vector<std::string_view> path(region.path.begin(), region.path.end());
    const auto is_it = [&](const model::RangeTerm& term) {
      return term.names_itself(region.domain, path, region.kind);
    };
    return ranges.chooses(region.domain, path, region.kind) &&
           (only.empty() || std::ranges::any_of(only, is_it));
  };
  const model::RangeSelection without_include{{}, ranges.exclude, {}};
  const auto is_printed_as = [&](const MatchedRegion& region) {
    const std::vector<std::string_view> path(region.path.begin(), region.path.end());
    if (!without_include.chooses(region.domain, path, region.kind))
      return false;
    if (!only.empty())
      return is_printed_by(only, region.domain, path);
    for (std::size_t levels = 1; levels <= path.size(); ++levels)  // it, or one that it lies in
      if (is_printed_by(ranges.include, region.domain, std::span(path).first(levels)))
        return true;
    return false;
  };
  const bool as_written = std::ranges::any_of(regions, is_chosen);
  std::erase_if(regions, [&](const MatchedRegion& region) {
    return as_written ? !is_chosen(region) : !is_printed_as(region);
  });
  if (!regions.empty() || (ranges.empty() && only.empty()))
    return {};
  std::string option = "--region";
  if (only.empty())
    option = ranges.include.empty() ? "--exclude" : "--include";
  return base::fail(base::Code::kNothingCaptured,
                    "no region matches",
                    option,
                    "There are: " + base::join(seen, ", "));
}

bool have_common_region(std::span<const MatchedRegion> regions) {
  if (regions.empty())
    return false;
  const std::size_t sides = regions.front().of.size();
  std::vector<bool> has_ranges(sides);
  bool have_common_row = false;
  for (const MatchedRegion& region : regions) {
    const bool is_common = on_all_sides(region);
    if (!model::is_range(region)) {
      have_common_row = have_common_row || is_common;
      continue;
    }
    if (is_common)
      return true;
    for (std::size_t side = 0; side < sides; ++side) {
      if (any_of(region, side) != nullptr)
        has_ranges[side] = true;
    }
  }
  const bool all_have_ranges = std::ranges::all_of(has_ranges, std::identity());
  return have_common_row && !all_have_ranges;
}

std::string largest_gone(std::span<const MatchedRegion> regions) {
  const MatchedRegion* largest = nullptr;
  double longest_ns = 0;
  for (const MatchedRegion& region : regions) {
    if (!model::is_range(region))
      continue;
    const double wall_ns = inclusive_wall_of_runs(region.of.front());
    if (wall_ns <= longest_ns)
      continue;
    longest_ns = wall_ns;
    largest = &region;
  }
  if (largest == nullptr || any_of(*largest, largest->of.size() - 1) != nullptr)
    return {};
  return model::path_text(largest->domain, largest->path);
}

namespace {

using RangeKey = std::tuple<std::string, model::RangeKind, Path>;

Path path_above(const MatchedRegion& region) {
  return Path(region.path.begin(), region.path.end() - 1);
}

/// Finds the renames between the first side and others.
class RenameSearch {
 public:
  explicit RenameSearch(std::span<const MatchedRegion> regions) : regions_(regions) {
    for (const MatchedRegion& region : regions) {
      if (region.path.size() > 1)
        children_[key_of(region, path_above(region))].insert(region.path.back());
      if (on_all_sides(region))
        shared_.insert(key_of(region, region.path));
    }
  }

  void add_offers(std::size_t side, std::vector<model::RenameOffer>& offers) const {
    std::set<std::size_t> taken;
    for (const Candidate& candidate : candidates(side)) {
      if (taken.contains(candidate.gone) || taken.contains(candidate.fresh))
        continue;
      taken.insert(candidate.gone);
      taken.insert(candidate.fresh);
      const MatchedRegion& old = regions_[candidate.gone];
      const MatchedRegion& young = regions_[candidate.fresh];
      offers.push_back(
          {side, base::join(old.path, " > "), base::join(young.path, " > "), candidate.reason});
    }
  }

 private:
  struct Candidate {
    double score;
    std::size_t gone, fresh;
    std::string reason;
  };

  static RangeKey key_of(const MatchedRegion& region, const Path& path) {
    return {region.domain, region.kind, path};
  }

  /// The best first.
  [[nodiscard]] std::vector<Candidate> candidates(std::size_t side) const {
    std::vector<std::size_t> gone, fresh;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      const MatchedRegion& region = regions_[i];
      if (region.path.size() > 1 && !shared_.contains(key_of(region, path_above(region))))
        continue;
      const bool on_first = any_of(region, 0) != nullptr;
      const bool on_side = any_of(region, side) != nullptr;
      if (on_first && !on_side && gone.size() < kMostCandidates)
        gone.push_back(i);
      if (!on_first && on_side && fresh.size() < kMostCandidates)
        fresh.push_back(i);
    }
    std::vector<Candidate> candidates;
    for (const std::size_t g : gone)
      for (const std::size_t f : fresh)
        if (auto candidate = candidate_of(g, f, side))
          candidates.push_back(std::move(*candidate));
    std::stable_sort(candidates.begin(),
                     candidates.end(),
                     [](const Candidate& x, const Candidate& y) { return x.score > y.score; });
    return candidates;
  }

  /// Nothing where they agree in less than two.
  [[nodiscard]] std::optional<Candidate> candidate_of(std::size_t gone,
                                                      std::size_t fresh,
                                                      std::size_t side) const {
    const MatchedRegion& old = regions_[gone];
    const MatchedRegion& young = regions_[fresh];
    if (old.domain != young.domain || old.kind != young.kind)
      return std::nullopt;
    if (path_above(old) != path_above(young))
      return std::nullopt;
    const DigestRegion& a = *any_of(old, 0);
    const DigestRegion& b = *any_of(young, side);
    std::vector<std::string> reasons;
    const std::vector<std::string> other{young.path.back()};
    if (!base::nearest(old.path.back(), other).empty())
      reasons.emplace_back("nearly the same name");
    if (a.occurrences == b.occurrences)
      reasons.push_back("both " + base::counted(a.occurrences, "time"));
    const std::size_t count = common_children(old, young);
    if (count > 0)
      reasons.push_back("the same " + base::counted(count, "range") + " inside");
    const double wall_a = median_wall(a);
    const double wall_b = median_wall(b);
    const bool alike =
        wall_a > 0 && wall_b > 0 && std::abs(std::log(wall_b / wall_a)) < std::log(1.25);
    if (alike)
      reasons.emplace_back("times within a quarter");
    if (reasons.size() < 2)
      return std::nullopt;
    const double distance = alike ? std::abs(std::log(wall_b / wall_a)) : 1;
    const double score = static_cast<double>(reasons.size()) - distance;
    return Candidate{score, gone, fresh, base::join(reasons, ", ")};
  }

  /// How many ranges both have inside; 0 where these are less than half of one's.
  [[nodiscard]] std::size_t common_children(const MatchedRegion& old,
                                            const MatchedRegion& young) const {
    const auto in_old = children_.find(key_of(old, old.path));
    const auto in_young = children_.find(key_of(young, young.path));
    if (in_old == children_.end() || in_young == children_.end())
      return 0;
    const std::set<std::string>& a = in_old->second;
    const std::set<std::string>& b = in_young->second;
    const auto common = static_cast<std::size_t>(
        std::ranges::count_if(a, [&](const std::string& name) { return b.contains(name); }));
    return 2 * common >= std::max(a.size(), b.size()) ? common : 0;
  }

  std::span<const MatchedRegion> regions_;
  std::map<RangeKey, std::set<std::string>> children_;  ///< over all sides
  std::set<RangeKey> shared_;                           ///< ranges that all sides have
};

}  // namespace

std::vector<model::RenameOffer> offer_renames(std::span<const MatchedRegion> regions,
                                              std::size_t sides) {
  const RenameSearch search(regions);
  std::vector<model::RenameOffer> offers;
  for (std::size_t side = 1; side < sides; ++side)
    search.add_offers(side, offers);
  return offers;
}

}  // namespace rangescope::analyze
