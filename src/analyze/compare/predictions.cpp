#include "analyze/compare/predictions.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "analyze/statistics/spread.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

constexpr const char* kWallTag = "wall_ns.inclusive";

bool is_predicted(const model::Verdict& line) {
  const bool has_outcome = line.after && line.after->before_ns > 0;
  return has_outcome && !line.cure.empty() && !line.after->path.empty();
}

/// The lines with predictions of the first run that has any.
std::vector<model::Verdict> predicted_lines(const model::Side& side) {
  for (const model::Digest& run : side.runs) {
    std::vector<model::Verdict> lines;
    std::ranges::copy_if(run.verdict, std::back_inserter(lines), is_predicted);
    if (!lines.empty())
      return lines;
  }
  return {};
}

/// The time of that path as it was recorded: what its first line is about.
double replayed_ns(const std::vector<model::Verdict>& lines, const std::string& path) {
  for (const model::Verdict& line : lines) {
    if (line.after->path == path)
      return line.after->before_ns;
  }
  return 0;
}

/// Wall time of an instance of the range of that path in one run; absent where it has none.
std::optional<double> instance_ns(const model::Digest& run, const std::string& path) {
  for (const model::DigestRegion& region : run.regions) {
    if (model::path_text(region.domain, region.path) != path)
      continue;
    const auto wall = region.values.find(kWallTag);
    if (wall == region.values.end() || region.occurrences <= 0)
      return {};
    return wall->second / static_cast<double>(region.occurrences);
  }
  return {};
}

/// The median over the runs of a side.
std::optional<double> instance_ns(const model::Side& side, const std::string& path) {
  std::vector<double> lengths;
  for (const model::Digest& run : side.runs) {
    const auto length_ns = instance_ns(run, path);
    if (length_ns)
      lengths.push_back(*length_ns);
  }
  if (lengths.empty())
    return {};
  return median_of(lengths);
}

/// What the range is called in the later sides.
std::string path_in_others(const std::string& path, ComparedRegions regions) {
  for (const model::ComparedRegion& region : regions) {
    if (region.renamed_from == path)
      return model::path_text(region.domain, region.path);
  }
  return path;
}

}  // namespace

ComparedPredictions compare_predictions(Sides sides, ComparedRegions regions) {
  ComparedPredictions predictions;
  const std::vector<model::Verdict> lines = predicted_lines(sides.front());
  for (std::size_t side = 1; side < sides.size(); ++side) {
    for (const model::Verdict& line : lines) {
      const model::Outcome& outcome = *line.after;
      const auto now_ns = instance_ns(sides.front(), outcome.path);
      if (!now_ns)
        continue;
      // Shares of the replayed time, free of what recording added, apply to the measured one.
      const double scale = *now_ns / replayed_ns(lines, outcome.path);
      const double saves_ns = outcome.before_ns - outcome.after_ns;
      model::ComparedPrediction prediction;
      prediction.side = side;
      prediction.cure = line.cure;
      prediction.path = outcome.path;
      prediction.text = line.text;
      prediction.is_bound = outcome.is_bound;
      prediction.before_ns = *now_ns;
      prediction.predicted_ns = scale * outcome.after_ns;
      prediction.low_ns = scale * (outcome.before_ns - line.saves_high_ns.value_or(saves_ns));
      prediction.high_ns = scale * (outcome.before_ns - line.saves_low_ns.value_or(saves_ns));
      prediction.realised_ns = instance_ns(sides[side], path_in_others(outcome.path, regions));
      predictions.push_back(std::move(prediction));
    }
  }
  return predictions;
}

}  // namespace rangescope::analyze
