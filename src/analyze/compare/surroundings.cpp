#include "analyze/compare/surroundings.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analyze/compare/series/shell_command.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

/// Facts that differ from run to run and say nothing about speed.
constexpr std::array<std::string_view, 5> kIdle = {
    "env.SLURM_JOB_ID", "env.SLURM_PROCID", "env.LANG", "env.LC_ALL", "memory"};
constexpr std::array<std::string_view, 6> kHeavy = {"GPU", "GPUs", "driver", "cpu", "cpus", "data"};

std::map<std::string, std::string> facts_of(const model::Digest& run) {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : run.run.environment) {
    // The devices of the recording say more than nvidia-smi's list, which has those that were not
    // used too.
    if (name.starts_with("gpu.") && !run.devices.empty())
      continue;
    if (name.starts_with("env.RANGESCOPE_") || name.starts_with("env.NVTX_"))
      continue;
    if (std::find(kIdle.begin(), kIdle.end(), name) == kIdle.end())
      facts[name] = value;
  }
  if (!run.devices.empty())
    facts["GPU"] = base::join(run.devices, "; ");
  const std::vector<std::string> command = command_without_shell(run.run.command);
  if (!command.empty()) {
    facts["program"] = command.front();
    facts["arguments"] = base::shell_quote(std::span(command).subspan(1));
  }
  if (!run.run.tool.empty())
    facts["rangescope"] = run.run.tool;
  facts["data"] = base::join(run.run.sources, "; ");
  return facts;
}

}  // namespace

std::vector<model::EnvironmentDifference> environment_differences(
    std::span<const model::Side> sides) {
  std::vector<std::map<std::string, std::set<std::string>>> known(sides.size());
  std::set<std::string> names;
  for (std::size_t s = 0; s < sides.size(); ++s) {
    for (const model::Digest& run : sides[s].runs) {
      for (const auto& [name, value] : facts_of(run)) {
        known[s][name].insert(value.empty() ? "(none)" : value);
        names.insert(name);
      }
    }
  }
  std::vector<model::EnvironmentDifference> out;
  for (const std::string& name : names) {
    const bool is_heavy = std::ranges::find(kHeavy, name) != kHeavy.end();
    model::EnvironmentDifference difference{name, {}, is_heavy || name.starts_with("gpu.")};
    bool differs = false;
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const auto& values = known[s][name];
      difference.values.push_back(
          base::join(std::vector<std::string>(values.begin(), values.end()), " | "));
      differs = differs || values != known[0][name];
    }
    if (differs)
      out.push_back(std::move(difference));
  }
  std::stable_sort(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.heavy > b.heavy; });
  return out;
}

base::Result<void> check_repetitions(const model::Side& side) {
  for (std::size_t i = 1; i < side.runs.size(); ++i) {
    const model::Digest& first = side.runs[0];
    const model::Digest& other = side.runs[i];
    const bool have_other_commands = first.run.command != other.run.command;
    if (!have_other_commands && first.devices == other.devices)
      continue;
    const auto text_of = [&](const model::Digest& run) {
      if (have_other_commands)
        return base::shell_quote(run.run.command);
      return base::join(run.devices, "; ");
    };
    return base::fail(
        base::Code::kNotComparable,
        fmt::format("'{}' holds runs that are not repetitions of each other: {} ran {}, {} ran {}",
                    side.label,
                    first.run.id,
                    text_of(first),
                    other.run.id,
                    text_of(other)),
        {},
        "Name the runs one by one, or make repetitions: rangescope profile --repeat 5 -- program");
  }
  return {};
}

std::vector<std::string> cautions(const model::Side& side) {
  std::vector<std::string> out;
  std::map<std::string, std::uint64_t> losses;
  std::size_t failed = 0, partial = 0;
  std::string reason;
  for (const model::Digest& run : side.runs) {
    for (const model::Loss& loss : run.losses) {
      if (loss.severity != model::Severity::kInfo)
        losses[std::string(loss.kind.id())] += loss.count;
    }
    if (run.partial_gpu)
      ++partial;
    if (run.run.signal)
      reason = fmt::format("signal {}", *run.run.signal);
    if (run.run.exit_code.value_or(0) != 0)
      reason = fmt::format("exit code {}", *run.run.exit_code);
    if (run.run.signal || run.run.exit_code.value_or(0) != 0)
      ++failed;
  }
  if (failed > 0) {
    std::string text = side.label + ": the program failed (" + reason + ")";
    if (side.runs.size() > 1)
      text += fmt::format(" in {} of {} runs", failed, side.runs.size());
    out.push_back(std::move(text));
  }
  for (const auto& [kind, count] : losses)
    out.push_back(fmt::format("{}: data was lost: {} ({})", side.label, kind, count));
  if (partial > 0)
    out.push_back(fmt::format(
        "{}: GPU work was recorded for a part of the run only, since counters were collected in "
        "the rest; its GPU values are left out",
        side.label));
  return out;
}

}  // namespace rangescope::analyze
