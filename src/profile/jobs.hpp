// Parallel jobs: where this process belongs, and one report of all ranks (runs/job/folder.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collect/collector.hpp"
#include "config/compose.hpp"
#include "profile/analyzed.hpp"
#include "profile/digests.hpp"
#include "runs/job/folder.hpp"

namespace rangescope::profile {

/// run.ranks, which place_in_job() has checked.
[[nodiscard]] std::vector<std::uint32_t> ranks_asked_for(const config::Config& config);
/// "0,8,16-23" as numbers; kUsage for what is none.
[[nodiscard]] base::Result<std::vector<std::uint32_t>> parse_ranks(
    const std::vector<std::string>& texts, const std::string& where);

/// The place in its job of this process: without a name where it is no rank of one. kUsage for
/// --ranks that are no numbers.
[[nodiscard]] base::Result<runs::job::Place> place_in_job(const config::Config& config);

/// Becomes the program, as without rangescope. Returns only where it cannot.
[[nodiscard]] base::Error run_bare(const collect::Request& request);

/// Writes into the processes of a capture what its run knows of them: host, run and rank.
void label_processes(const std::filesystem::path& capture, model::Session& session);

/// The report of a job, of all ranks or of `ranks`; what ranks are missing, died or cannot be read
/// is a loss. kNothingCaptured where none left a capture.
[[nodiscard]] base::Result<Analyzed> analyze_job(const runs::job::Job& job,
                                                 const analyze::Options& options,
                                                 const read::Options& reading);

/// The error where no rank, or none of `ranks`, left anything.
[[nodiscard]] tl::unexpected<base::Error> nothing_of(const runs::job::Job& job,
                                                     const std::vector<std::uint32_t>& ranks);
/// Adds to a report of all ranks which of them are lost, and that no call of MPI was recorded.
void add_job(const runs::job::Job& job, model::Report& report);
/// A job's name, with the facts of its first rank's run, and what the runs of `ranks` used.
[[nodiscard]] analyze::RunFacts facts_of_job(const runs::job::Job& job,
                                             const std::filesystem::path& first,
                                             std::span<const std::filesystem::path> ranks);

/// What a person named: runs and files, joined into one report, or one job. `merged`: as
/// analyze_digests() has it; kUsage where no job was named.
[[nodiscard]] base::Result<Analyzed> analyze_named(const std::filesystem::path& root,
                                                   const std::vector<std::string>& named,
                                                   const analyze::Options& options,
                                                   const read::Options& reading,
                                                   JobFrom from = JobFrom::kCaptures,
                                                   const std::filesystem::path& merged = {});

/// What was named, rank by rank: each analyzed by itself, one in memory at a time. `job` names them
/// all; the rank is absent where it is unknown. Ranks of a job that cannot be read are warned of;
/// kNothingCaptured where none can.
[[nodiscard]] base::Result<void> each_rank(
    const std::filesystem::path& root,
    const std::vector<std::string>& named,
    const analyze::Options& options,
    const read::Options& reading,
    const std::function<base::Result<void>(
        const Analyzed& analyzed, const std::string& job, std::optional<std::uint32_t> rank)>& use);

}  // namespace rangescope::profile
