// Which jobs and runs may go, and making jobs go. A job counts as one, and goes as a whole.
//
// Only a folder that holds nothing but job.json and runs of its ranks is touched, and only while nobody works on any of
// them. As with runs: it must belong to this user, links are never followed, and another file system is not entered.
#pragma once

#include "runs/retention.hpp"

namespace rangescope::runs::job {

/// Runs and jobs of a root that would be deleted, oldest first. Both kinds count towards `keep`.
[[nodiscard]] std::vector<runs::Candidate> prunable(const std::filesystem::path& root, const runs::Retention& retention,
                                                    std::int64_t now_unix_ns);

/// Deletes a job's folder; kUsage with the reason for what must stay.
[[nodiscard]] base::Result<void> remove_job(const std::filesystem::path& folder);

}  // namespace rangescope::runs::job
