#include "cli/print/runs.hpp"

#include <fmt/chrono.h>

#include <nlohmann/json.hpp>

#include "base/process.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runs/imports.hpp"
#include "runs/job/folder.hpp"
#include "runs/manifest.hpp"
#include "runs/provenance.hpp"
#include "runs/retention.hpp"
#include "runs/status.hpp"

namespace rangescope::cli {
namespace {

// "done", "interrupted", "nothing_captured" ...: what a list has room for.
std::string state_text(const std::filesystem::path& run) {
  const auto status = runs::read_status(run);
  if (!status)
    return "unknown";
  if (status->state == runs::RunState::kDone)
    return status->outcome;
  return std::string(runs::state_name(status->state));
}

/// "-" where it was not measured.
std::string duration_text(std::int64_t duration_ns) {
  if (duration_ns <= 0)
    return "-";
  return base::format_ns(static_cast<double>(duration_ns));
}

/// "job/run" for the run of a rank.
std::string name_of(const std::filesystem::path& run) {
  const std::string job = runs::job::job_of(run).filename().string();
  if (job.empty())
    return run.filename().string();
  return job + "/" + run.filename().string();
}

/// The program that was profiled, or how the files came in.
std::string command_of(const runs::Manifest& manifest) {
  if (!manifest.argv.empty())
    return base::shell_quote(manifest.argv);
  return "(" + base::shell_quote(manifest.arguments) + ")";
}

nlohmann::json as_json(const std::filesystem::path& run, const runs::Manifest& manifest) {
  nlohmann::json out = {{"run", run.filename().string()},
                        {"path", run.string()},
                        {"command", manifest.argv},
                        {"began_unix_ns", manifest.start_unix_ns},
                        {"ended_unix_ns", nullptr},
                        {"state", state_text(run)},
                        {"bytes", runs::size_of(run)},
                        {"exit_code", nullptr},
                        {"message", nullptr}};
  if (manifest.end_unix_ns > 0)
    out["ended_unix_ns"] = manifest.end_unix_ns;
  if (const auto status = runs::read_status(run);
      status && status->state == runs::RunState::kDone) {
    out["exit_code"] = status->exit_code;
    out["message"] = status->message;
  }
  return out;
}

}  // namespace

nlohmann::json runs_json(std::span<const std::filesystem::path> folders) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& run : folders)
    if (const auto manifest = runs::read_manifest(run))
      out.push_back(as_json(run, *manifest));
  return out;
}

base::Result<nlohmann::json> run_json(const std::filesystem::path& run) {
  const auto manifest = TRY(runs::read_manifest(run));
  return as_json(run, manifest);
}

nlohmann::json stages_json(std::span<const runs::StageCount> counts) {
  nlohmann::json out = nlohmann::json::array();
  for (const runs::StageCount& count : counts)
    out.push_back({{"stage", count.stage},
                   {"tool", count.tool},
                   {"step", count.step},
                   {"ok", count.ok},
                   {"empty", count.empty},
                   {"failed", count.failed},
                   {"not_tried", count.refused},
                   {"median_wall_ns", count.median_wall_ns}});
  return out;
}

report::Grid runs_grid(std::span<const std::filesystem::path> folders) {
  report::Grid grid({{"run", false},
                     {"began", false},
                     {"took", true, false, 2},
                     {"state", false},
                     {"size", true, false, 1},
                     {"command", false, true}});
  for (const auto& run : folders) {
    const auto manifest = runs::read_manifest(run);
    if (!manifest)
      continue;
    std::string took = "-";
    if (manifest->end_unix_ns > 0)
      took = base::format_ns(static_cast<double>(manifest->end_unix_ns - manifest->start_unix_ns));
    const auto began = static_cast<std::time_t>(manifest->start_unix_ns / 1'000'000'000);
    grid.add({{name_of(run)},
              {fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(began))},
              {took},
              {state_text(run)},
              {base::format_bytes(static_cast<double>(runs::size_of(run)))},
              {command_of(*manifest)}});
  }
  return grid;
}

base::Result<std::string> run_page(const std::filesystem::path& run) {
  const auto manifest = TRY(runs::read_manifest(run));
  std::string page;
  const auto field = [&](std::string_view name, const std::string& value) {
    if (!value.empty())
      page += fmt::format("{:<11} {}\n", name, base::printable(value));
  };
  field("run", run.string());
  field("command", command_of(manifest));
  field("cwd", manifest.cwd);
  field("tool", manifest.tool);
  field("began", runs::utc_text(manifest.start_unix_ns));
  if (manifest.end_unix_ns > 0)
    field("ended", runs::utc_text(manifest.end_unix_ns));
  field("size", base::format_bytes(static_cast<double>(runs::size_of(run))));
  if (const auto status = runs::read_status(run)) {
    field("state", std::string(runs::state_name(status->state)));
    field("program", status->program);
    if (status->state == runs::RunState::kDone)
      field("exit code", std::to_string(status->exit_code));
    field("outcome", status->outcome);
    field("message", status->message);
    for (const model::Loss& loss : status->losses)
      field("loss", fmt::format("{} ({}): {}", loss.kind.id(), loss.count, loss.detail));
    for (const model::Finding& finding : status->findings) {
      std::string text = finding.id + ": " + finding.found;
      if (!finding.hint.empty())
        text += ". " + finding.hint;
      field(model::verdict_name(finding.verdict), text);
    }
  }
  if (const auto provenance = runs::read_provenance(run)) {
    for (const auto& [name, value] : provenance->facts)
      field(name, value);
    for (const auto& [name, value] : provenance->variables)
      field("env", name + "=" + value);
  }
  if (const auto imports = runs::read_imports(run))
    for (const runs::Import& import : *imports)
      field("from",
            fmt::format(
                "{}, {} {}: {}", import.file, import.tool, import.version, import.given_path));
  for (const auto& [path, proof] : manifest.files)
    field("file",
          fmt::format("{} ({})", path, base::format_bytes(static_cast<double>(proof.bytes))));
  return page;
}

report::Grid stages_grid(std::span<const runs::StageCount> counts) {
  report::Grid grid({{"stage", false},
                     {"tool", false},
                     {"step", false},
                     {"ok"},
                     {"empty"},
                     {"failed"},
                     {"not tried"},
                     {"median"},
                     {"why", false, true}});
  for (const runs::StageCount& count : counts) {
    std::vector<std::string> causes;
    for (const auto& [cause, times] : count.causes)
      causes.push_back(fmt::format("{} {}", times, cause));
    grid.add({{count.stage},
              {count.tool},
              {count.step},
              {std::to_string(count.ok)},
              {std::to_string(count.empty)},
              {std::to_string(count.failed)},
              {std::to_string(count.refused)},
              {duration_text(count.median_wall_ns)},
              {base::join(causes, ", ")}});
  }
  return grid;
}

report::Grid baselines_grid(
    std::span<const std::pair<std::filesystem::path, runs::Baseline>> baselines) {
  report::Grid grid({{"name", false},
                     {"machine", false, false, 3},
                     {"runs"},
                     {"ranges", true, false, 2},
                     {"saved", false, false, 1},
                     {"command", false, true}});
  for (const auto& [path, baseline] : baselines) {
    const model::Digest& run = baseline.runs.front();
    const auto ranges = std::ranges::count_if(run.regions, model::is_range<model::DigestRegion>);
    grid.add({{baseline.name},
              {baseline.machine},
              {std::to_string(baseline.runs.size())},
              {std::to_string(ranges)},
              {runs::utc_text(baseline.saved_unix_ns)},
              {base::shell_quote(run.run.command)}});
  }
  return grid;
}

}  // namespace rangescope::cli
