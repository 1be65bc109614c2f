// Which runs may go, and making them go. Only directories whose manifest proves that rangescope
// made them are touched.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::runs {

struct Retention {
  std::optional<std::size_t> keep;                 ///< the newest so many stay
  std::optional<std::chrono::seconds> older_than;  ///< only runs that began longer ago
};

struct Candidate {
  std::filesystem::path path;
  std::int64_t start_unix_ns = 0;
  std::uint64_t bytes = 0;
};

/// What would be deleted, oldest first: runs of this user whose manifest names the folder in which
/// it lies (a copied one proves nothing), but none that somebody still works on. With both rules a
/// run must fall under both.
[[nodiscard]] std::vector<Candidate> prunable(const std::filesystem::path& root,
                                              const Retention& retention,
                                              std::int64_t now_unix_ns);

/// Deletes one run directory; refuses (kUsage) what is not one, symbolic links, a run that somebody
/// works on, and one below which another file system is mounted. Links within are removed, never
/// followed.
[[nodiscard]] base::Result<void> remove_run(const std::filesystem::path& run);

/// "7d", "36h", "90m", "30s", "2w". kUsage with the forms.
[[nodiscard]] base::Result<std::chrono::seconds> parse_age(std::string_view text);

/// Bytes that all regular files below take on the disk: of holes none.
[[nodiscard]] std::uint64_t size_of(const std::filesystem::path& run);

}  // namespace rangescope::runs

// Jobs. A job counts as one, and goes as a whole: only a folder that holds nothing but job.json and
// runs of its ranks is touched, and only while no process works on any of them. As with runs: it
// must belong to this user, links are never followed, and another file system is not entered.
namespace rangescope::runs::job {

/// Runs and jobs of a root that would be deleted, oldest first. Both kinds count towards `keep`.
[[nodiscard]] std::vector<Candidate> prunable(const std::filesystem::path& root,
                                              const Retention& retention,
                                              std::int64_t now_unix_ns);

/// Deletes a job's folder; kUsage with the reason for what must stay.
[[nodiscard]] base::Result<void> remove_job(const std::filesystem::path& folder);

}  // namespace rangescope::runs::job
