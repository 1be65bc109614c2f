// From captures to a report: what profile, report, watch, compare and import share.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/analyze.hpp"
#include "base/result.hpp"
#include "model/report.hpp"
#include "model/session.hpp"
#include "profile/captures.hpp"

namespace rangescope::profile {

struct Analyzed {
  model::Session session;
  model::Report report;
  std::vector<NcuPart> parts = {};  ///< where the results of ncu's reports are in the session
};

/// What a person named: a file as it is, or all captures of a run (then `run` is set, unless it
/// was). kNoInput, kUsage, kNothingCaptured as of runs::find_run.
[[nodiscard]] base::Result<std::vector<std::filesystem::path>> find_inputs(
    const std::filesystem::path& root, const std::string& written, std::filesystem::path& run);

/// The captures of a run without those that are empty because the program gave that tool nothing;
/// of a series those of the repetition of median duration, and what nsys and ncu left next to it.
[[nodiscard]] std::vector<std::filesystem::path> captures_to_read(const std::filesystem::path& run);
/// Those of them in which there is something.
[[nodiscard]] std::vector<std::filesystem::path> filled_captures(const std::filesystem::path& run);

/// Reads a capture or file and analyzes it; the run's own facts come from `run`
/// ("" where the input is no run directory). kNothingCaptured, with how to go on, where there is no
/// range in it.
[[nodiscard]] base::Result<Analyzed> analyze_input(const std::filesystem::path& input,
                                                   const std::filesystem::path& run,
                                                   const analyze::Options& options);

/// The same of several inputs, joined into one session (profile/captures.hpp). `read`: those that
/// were read already. `job_facts`: what is known of a job; that of a run comes from its
/// directory. `tally`: as in analyze::answer().
[[nodiscard]] base::Result<Analyzed> analyze_inputs(
    std::span<const std::filesystem::path> inputs,
    const std::filesystem::path& run,
    const analyze::Options& options,
    read::Options reading = {},
    Sessions read = {},
    std::optional<analyze::RunFacts> job_facts = {},
    base::Result<analyze::tally::Digest>* tally = nullptr);

/// How a command line names the input from here: a run or job below rangescope-runs by its name,
/// all else by its path.
[[nodiscard]] std::string named_input(const std::filesystem::path& input,
                                      const std::filesystem::path& run);

/// The program itself was seen: without ranges it is the one region.
[[nodiscard]] bool holds_program(const model::Session& session);

/// Why a native capture holds no range: what follows "nothing was captured: ".
[[nodiscard]] std::string why_no_range(const model::Session& native);
[[nodiscard]] bool is_empty_folder(const std::filesystem::path& path);

/// Writes it in one of report/'s formats, as wide as where there is no terminal.
[[nodiscard]] base::Result<void> write_report(const Analyzed& analyzed,
                                              std::string_view format,
                                              const std::filesystem::path& to);

/// Is there a loss that --strict does not forgive?
[[nodiscard]] bool has_loss(const model::Report& report);

}  // namespace rangescope::profile
