#include "runs/job/retention.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "runs/folder.hpp"
#include "runs/hold.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::runs::job {
namespace {

namespace fs = std::filesystem;

tl::unexpected<base::Error> stays(const fs::path& path, const char* why) {
  return base::fail(base::Code::kUsage, std::string(why) + " and will not be deleted", path.string());
}

/// May it go as a whole? kUsage with what forbids it.
base::Result<void> removable(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      !is_job(folder))
    return stays(folder, "is not the folder of a job of yours");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    const bool folder_of_a_rank = !entry->is_symlink(ignored) && entry->is_directory(ignored);
    if (!folder_of_a_rank && (name == "job.json" || (name.starts_with(".job-") && name.ends_with(".json")))) continue;
    if (!folder_of_a_rank || !member_of(entry->path())) return stays(entry->path(), "is no run of the job");
    if (const auto manifest = runs::read_manifest(entry->path()); manifest && manifest->id != name)
      return stays(entry->path(), "is a copy of another run");
    const auto state = runs::read_status(entry->path());
    if (runs::is_held(entry->path()).value_or(state && state->state == runs::State::kRunning))
      return stays(entry->path(), "is still running");
  }
  if (error) return stays(folder, "cannot be read");
  return {};
}

}  // namespace

std::vector<runs::Candidate> prunable(const fs::path& root, const runs::Retention& retention,
                                      std::int64_t now_unix_ns) {
  std::vector<runs::Candidate> all;
  for (const fs::path& run : runs::list_runs(root))
    if (const auto manifest = runs::read_manifest(run)) all.push_back({run, manifest->start_unix_ns, 0});
  std::set<fs::path> jobs;
  for (const fs::path& folder : list_jobs(root)) {
    const auto job = read_job(folder);
    if (job) all.push_back({folder, job->start_unix_ns, 0});
    jobs.insert(folder);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.start_unix_ns < b.start_unix_ns; });
  if (retention.keep) all.resize(all.size() - std::min(all.size(), *retention.keep));

  std::set<fs::path> runs_that_may_go;
  for (const auto& run : runs::prunable(root, {.older_than = retention.older_than}, now_unix_ns))
    runs_that_may_go.insert(run.path);
  std::erase_if(all, [&](runs::Candidate& one) {
    if (!jobs.contains(one.path)) return !runs_that_may_go.contains(one.path);
    return (retention.older_than &&
            std::chrono::nanoseconds(now_unix_ns - one.start_unix_ns) < *retention.older_than) ||
           !removable(one.path);
  });
  for (runs::Candidate& one : all) one.bytes = runs::size_of(one.path);
  return all;
}

base::Result<void> remove_job(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  TRY(removable(whole));
  auto parent = TRY(runs::Folder::open(fs::canonical(whole.parent_path(), error)));
  return parent.remove(whole.filename().string());
}

}  // namespace rangescope::runs::job
