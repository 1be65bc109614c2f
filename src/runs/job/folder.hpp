// A parallel job as one folder: <root>/<job>/, with
//
//   job.json      { "schema": "rangescope.job/1", "name": "slurm-1234.0", "launcher": "slurm",
//   "key": "...",
//                   "world_size": 8, "profiled": [0, 4], "started_unix_ns": N }; the first rank
//                   writes it. "profiled" is null where every rank is
//   rank-0/ ...   a run directory of each rank (runs/layout.hpp), with rank.json in it: { "schema":
//                 "rangescope.rank/1", "job": "...", "rank": 3, "local_rank": 1, "world_size": 8,
//                 "host": "..." }
//   .job-reported.json   empty: the last rank to finish has shown the job's report
//
// No process coordinates the ranks: making a folder is atomic, on shared file systems too. A second
// start of the job (a launcher that counts its jobs from zero again, an elastic restart, the same
// --job twice) gets <job>.2, and so on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/loss.hpp"
#include "runs/job/launcher.hpp"

namespace rangescope::runs::job {

/// The run directory of this rank, made, with its rank.json. kIo or kPermission with the path.
[[nodiscard]] base::Result<std::filesystem::path> make_run_dir(
    const std::filesystem::path& root,
    const Place& place,
    const std::vector<std::uint32_t>& profiled);

/// The job folder that a run directory is in; "" for a run of its own.
[[nodiscard]] std::filesystem::path job_of(const std::filesystem::path& run);

struct Member {
  std::filesystem::path run;
  std::optional<std::uint32_t> rank, local_rank;
  std::uint32_t world = 0;
  std::string host;
};
/// rank.json of a run; nothing where there is none that can be read.
[[nodiscard]] std::optional<Member> member_of(const std::filesystem::path& run);

struct Job {
  std::filesystem::path folder;
  std::string name, launcher;
  std::uint32_t world = 0;
  std::vector<std::uint32_t> profiled;  ///< the only ranks that were to be; empty: all
  std::int64_t start_unix_ns = 0;
  std::vector<Member> members;  ///< by rank, those without one last
};

[[nodiscard]] bool is_job(const std::filesystem::path& folder);
/// kNoInput, kBadData.
[[nodiscard]] base::Result<Job> read_job(const std::filesystem::path& folder);
/// The jobs of a root, oldest first.
[[nodiscard]] std::vector<std::filesystem::path> list_jobs(const std::filesystem::path& root);

/// A job by its name on a command line: its path, a folder that holds it and nothing else, its name
/// in `root` or the beginning of one, or `latest` where no run is younger. Nothing where a run or a
/// file is meant; kUsage where several begin so.
[[nodiscard]] base::Result<std::optional<Job>> find_job(const std::filesystem::path& root,
                                                        const std::string& said);

/// Is it the run of a rank whose job is reported as a whole, by the last one to finish?
[[nodiscard]] bool reports_together(const std::filesystem::path& run);
/// The job of a rank that has finished, where no other still runs or is to come: to one of them,
/// once.
[[nodiscard]] std::optional<Job> claim_report(const std::filesystem::path& run);

/// Ranks that left no run, that died, and that still run.
[[nodiscard]] std::vector<model::Loss> losses_of(const Job& job);

/// "0, 3-5, 9"; `limit` parts at most, and how many more
[[nodiscard]] std::string ranks_text(std::vector<std::uint32_t> ranks,
                                     std::size_t limit = SIZE_MAX);

}  // namespace rangescope::runs::job
