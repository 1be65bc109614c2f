#include "runs/stages.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.hpp"
#include "runs/imports.hpp"
#include "runs/json_text.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStagesSchema = "rangescope.stages/1";
constexpr const char* kStagesFile = "stages.json";

struct Tally {
  StageCount count;
  std::vector<std::int64_t> walls;
  std::map<std::string, std::uint64_t> causes;
};

std::uint64_t& count_of(StageCount& count, std::string_view outcome) {
  if (outcome == "ok")
    return count.ok;
  if (outcome == "empty")
    return count.empty;
  if (outcome == "refused")
    return count.refused;
  return count.failed;
}

void add(const Stage& stage, Tally& tally) {
  ++count_of(tally.count, stage.outcome);
  if (stage.outcome != "refused" && stage.wall_ns > 0)
    tally.walls.push_back(stage.wall_ns);
  if (stage.outcome == "empty" || stage.outcome == "failed")
    ++tally.causes[stage.why.empty() ? stage.message : stage.why];
}

std::int64_t median_of(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

StageCount finished(Tally tally) {
  StageCount count = std::move(tally.count);
  if (!tally.walls.empty())
    count.median_wall_ns = median_of(tally.walls);
  count.causes.assign(tally.causes.begin(), tally.causes.end());
  std::ranges::stable_sort(count.causes,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  return count;
}

/// A stage's outcome in the words of a stage, from that of a run that has one stage.
std::string stage_outcome(std::string_view of_run) {
  if (of_run == "nothing_captured")
    return "empty";
  const bool is_captured = of_run == "ok" || of_run == "program_failed" || of_run == "data_loss";
  return is_captured ? "ok" : "failed";
}

/// The one stage of a run that recorded natively, whose outcome its status has; none while it runs.
std::optional<Stage> native_stage(const fs::path& run) {
  const auto status = read_status(run);
  if (!status || status->state == RunState::kRunning)
    return std::nullopt;
  Stage stage;
  stage.stage = "native";
  stage.outcome = stage_outcome(status->outcome);
  stage.why = status->state == RunState::kInterrupted ? "interrupted" : status->outcome;
  if (const auto manifest = read_manifest(run)) {
    stage.tool = manifest->tool;
    if (manifest->end_unix_ns > 0)
      stage.wall_ns = manifest->end_unix_ns - manifest->start_unix_ns;
  }
  return stage;
}

constexpr auto kStageFields = [](auto& stage, auto field) {
  field("stage", stage.stage);
  field("tool", stage.tool);
  field("step", stage.step);
  field("attempt", stage.attempt);
  field("outcome", stage.outcome);
  field("why", stage.why);
  field("message", stage.message);
  field("evidence", stage.evidence, Missing::kOld);
  field("cure", stage.cure, Missing::kOld);
  field("wall_ns", stage.wall_ns);
  field("exit_code", stage.exit_code);
  field("results", stage.results);
  field("report", stage.report);
};

}  // namespace

base::Result<void> write_stages(const fs::path& run, const std::vector<Stage>& stages) {
  return write_list(run / kStagesFile, kStagesSchema, "stages", stages, kStageFields);
}

base::Result<std::vector<Stage>> read_stages(const fs::path& run) {
  return read_list<Stage>(run / kStagesFile, kStagesSchema, "stages", kStageFields);
}

std::vector<StageCount> count_stages(const std::vector<fs::path>& runs) {
  std::map<std::tuple<std::string, std::string, std::string>, Tally> tallies;
  for (const auto& run : runs) {
    auto stages = read_stages(run);
    if (!stages)
      continue;
    const auto imports = read_imports(run);
    if (!imports || !imports->empty())
      continue;  // nothing was run here
    if (stages->empty())
      if (std::optional<Stage> native = native_stage(run))
        stages->push_back(std::move(*native));
    for (const Stage& stage : *stages)
      add(stage, tallies[{stage.stage, stage.tool, stage.step}]);
  }
  std::vector<StageCount> out;
  for (auto& [key, tally] : tallies) {
    StageCount count = finished(std::move(tally));
    std::tie(count.stage, count.tool, count.step) = key;
    out.push_back(std::move(count));
  }
  return out;
}

}  // namespace rangescope::runs
