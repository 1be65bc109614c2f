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
  return status->state == runs::RunState::kDone ? status->outcome
                                                : std::string(runs::state_name(status->state));
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
  for (const runs::StageCount& one : counts)
    out.push_back({{"stage", one.stage},
                   {"tool", one.tool},
                   {"step", one.step},
                   {"ok", one.ok},
                   {"empty", one.empty},
                   {"failed", one.failed},
                   {"not_tried", one.refused},
                   {"median_wall_ns", one.median_wall_ns}});
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
    const bool finished = manifest->end_unix_ns > 0;
    const std::string job = runs::job::job_of(run).filename().string();
    const auto began = static_cast<std::time_t>(manifest->start_unix_ns / 1'000'000'000);
    grid.add({{(job.empty() ? "" : job + "/") + run.filename().string()},
              {fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(began))},
              {finished ? base::format_ns(
                              static_cast<double>(manifest->end_unix_ns - manifest->start_unix_ns))
                        : "-"},
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
    for (const model::Finding& finding : status->findings)
      field(model::verdict_name(finding.verdict),
            finding.id + ": " + finding.found + (finding.hint.empty() ? "" : ". " + finding.hint));
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
    std::string why;
    for (const auto& [cause, times] : count.causes)
      why += (why.empty() ? "" : ", ") + fmt::format("{} {}", times, cause);
    grid.add({{count.stage},
              {count.tool},
              {count.step},
              {std::to_string(count.ok)},
              {std::to_string(count.empty)},
              {std::to_string(count.failed)},
              {std::to_string(count.refused)},
              {count.median_wall_ns > 0 ? base::format_ns(static_cast<double>(count.median_wall_ns))
                                        : "-"},
              {why}});
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
