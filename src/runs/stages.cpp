#include "runs/stages.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "runs/imports.hpp"
#include "runs/json_text.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::runs {
namespace {

constexpr std::string_view kStagesSchema = "rangescope.stages/1";
constexpr const char* kStagesFile = "stages.json";

struct Tally {
  StageCount count;
  std::vector<std::int64_t> walls;
  std::map<std::string, std::uint64_t> causes;
};

void tally(Tally& into, const Stage& stage) {
  std::uint64_t& slot = stage.outcome == "ok"        ? into.count.ok
                        : stage.outcome == "empty"   ? into.count.empty
                        : stage.outcome == "refused" ? into.count.refused
                                                     : into.count.failed;
  ++slot;
  if (stage.outcome != "refused" && stage.wall_ns > 0) into.walls.push_back(stage.wall_ns);
  if (stage.outcome == "empty" || stage.outcome == "failed")
    ++into.causes[stage.why.empty() ? stage.message : stage.why];
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

base::Result<void> write_stages(const std::filesystem::path& run,
                                const std::vector<Stage>& stages) {
  return write_list(run / kStagesFile, kStagesSchema, "stages", stages, kStageFields);
}

base::Result<std::vector<Stage>> read_stages(const std::filesystem::path& run) {
  return read_list<Stage>(run / kStagesFile, kStagesSchema, "stages", kStageFields);
}

std::vector<StageCount> count_stages(const std::vector<std::filesystem::path>& runs) {
  std::map<std::tuple<std::string, std::string, std::string>, Tally> tallies;
  for (const auto& run : runs) {
    auto stages = read_stages(run);
    if (!stages) continue;
    const auto imports = read_imports(run);
    if (!imports || !imports->empty()) continue;  // nothing was run here
    if (stages->empty()) {                        // native only: its status has the outcome
      const auto status = read_status(run);
      if (!status || status->state == RunState::kRunning) continue;
      Stage stage;
      stage.stage = "native";
      stage.outcome = status->outcome == "nothing_captured" ? "empty"
                      : status->outcome == "ok" || status->outcome == "program_failed" ||
                              status->outcome == "data_loss"
                          ? "ok"
                          : "failed";
      stage.why = status->state == RunState::kInterrupted ? "interrupted" : status->outcome;
      if (const auto manifest = read_manifest(run)) {
        stage.tool = manifest->tool;
        if (manifest->end_unix_ns > 0)
          stage.wall_ns = manifest->end_unix_ns - manifest->start_unix_ns;
      }
      stages->push_back(std::move(stage));
    }
    for (const Stage& stage : *stages) tally(tallies[{stage.stage, stage.tool, stage.step}], stage);
  }
  std::vector<StageCount> out;
  for (auto& [key, one] : tallies) {
    std::tie(one.count.stage, one.count.tool, one.count.step) = key;
    if (!one.walls.empty()) {
      std::nth_element(one.walls.begin(),
                       one.walls.begin() + static_cast<std::ptrdiff_t>(one.walls.size() / 2),
                       one.walls.end());
      one.count.median_wall_ns = one.walls[one.walls.size() / 2];
    }
    one.count.causes.assign(one.causes.begin(), one.causes.end());
    std::stable_sort(one.count.causes.begin(), one.count.causes.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    out.push_back(std::move(one.count));
  }
  return out;
}

}  // namespace rangescope::runs
