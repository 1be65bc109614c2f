#include "profile/judged_apart.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "runs/layout.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

/// Lines on all recordings together, as many as fit on a screen; each recording has at least one.
constexpr std::size_t kMostLines = 6;

struct Recording {
  fs::path run;  ///< "" of a file that is in none
  std::vector<fs::path> files;
};

std::vector<Recording> recordings_of(std::span<const fs::path> inputs) {
  std::vector<Recording> recordings;
  for (const fs::path& input : inputs) {
    const fs::path run = runs::run_of(input);
    const auto same =
        run.empty() ? recordings.end() : std::ranges::find(recordings, run, &Recording::run);
    if (same != recordings.end())
      same->files.push_back(input);
    else
      recordings.push_back({run, {input}});
  }
  return recordings;
}

const fs::path& path_of(const Recording& recording) {
  return recording.run.empty() ? recording.files.front() : recording.run;
}

std::string name_of(const Recording& recording, const std::vector<Recording>& recordings) {
  const fs::path name = path_of(recording).filename();
  const auto has_that_name = [&](const Recording& other) {
    return path_of(other).filename() == name;
  };
  const bool is_unique = std::ranges::count_if(recordings, has_that_name) == 1;
  return base::printable(is_unique ? name.string() : path_of(recording).string());
}

/// The first region of the path in the report of all recordings.
std::optional<std::uint32_t> region_named(const model::Report& report,
                                          const model::Region& region) {
  for (std::uint32_t r = 0; r < report.regions.size(); ++r) {
    const model::Region& other = report.regions[r];
    if (other.path == region.path && other.domain == region.domain && other.kind == region.kind)
      return r;
  }
  return std::nullopt;
}

}  // namespace

base::Result<void> judge_each_recording(std::span<const fs::path> inputs,
                                        const analyze::Options& options,
                                        const read::Options& reading,
                                        model::Report& report) {
  const std::vector<Recording> recordings = recordings_of(inputs);
  if (recordings.size() < 2)
    return {};
  const std::size_t most_of_each = std::max<std::size_t>(1, kMostLines / recordings.size());
  std::vector<model::Verdict> verdicts;
  for (const Recording& recording : recordings) {
    const auto analyzed = analyze_inputs(recording.files, recording.run, options, reading);
    if (!analyzed) {  // it has nothing to judge by itself, as results without a timeline
      if (analyzed.error().code == base::Code::kNothingCaptured)
        continue;
      return tl::make_unexpected(analyzed.error());
    }
    const std::string prefix = "in " + name_of(recording, recordings) + ": ";
    const auto& lines = analyzed->report.verdict;
    for (model::Verdict verdict : std::span(lines).first(std::min(most_of_each, lines.size()))) {
      verdict.text = prefix + verdict.text;
      if (verdict.region)
        verdict.region = region_named(report, analyzed->report.regions[*verdict.region]);
      verdict.process.reset();
      if (verdict.after)
        verdict.after->region = verdict.region;
      verdicts.push_back(std::move(verdict));
    }
  }
  const auto weight = [](const model::Verdict& verdict) {
    return std::tuple(verdict.severity, verdict.saves_ns.value_or(-1));
  };
  std::ranges::stable_sort(verdicts, std::greater<>(), weight);
  report.verdict = std::move(verdicts);
  return {};
}

}  // namespace rangescope::profile
