#include "runs/retention.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "runs/folder.hpp"
#include "runs/hold.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

/// A folder of this user; a link to one is none.
bool is_own_folder(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    return false;
  return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

bool is_own(const fs::path& run, const Manifest& manifest) {
  return is_own_folder(run) && manifest.id == run.filename().string();
}

/// Compares seconds: from 293 years on, an age in nanoseconds is more than a number holds.
bool is_too_young(std::int64_t start_unix_ns,
                  std::int64_t now_unix_ns,
                  const Retention& retention) {
  const auto age = std::chrono::nanoseconds(now_unix_ns - start_unix_ns);
  return retention.older_than &&
         std::chrono::floor<std::chrono::seconds>(age) < *retention.older_than;
}

}  // namespace

std::vector<Candidate> prunable(const fs::path& root,
                                const Retention& retention,
                                std::int64_t now_unix_ns) {
  const auto runs = list_runs(root);
  std::size_t old_enough_by_count = runs.size();
  if (retention.keep)
    old_enough_by_count = std::max(runs.size(), *retention.keep) - *retention.keep;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < old_enough_by_count; ++i) {
    const auto manifest = read_manifest(runs[i]);
    if (!manifest || !is_own(runs[i], *manifest))
      continue;
    if (is_too_young(manifest->start_unix_ns, now_unix_ns, retention))
      continue;
    const auto status = read_status(runs[i]);
    if (status && status->state == RunState::kRunning)
      continue;
    candidates.push_back({runs[i], manifest->start_unix_ns, size_of(runs[i])});
  }
  return candidates;
}

base::Result<void> remove_run(const fs::path& run) {
  std::error_code error;
  if (fs::is_symlink(run, error))
    return base::fail(
        base::Code::kUsage, "is a symbolic link and will not be deleted", run.string());
  const auto manifest = read_manifest(run);
  const auto folder = fs::absolute(run, error).lexically_normal();
  if (!manifest || !is_own(folder, *manifest))
    return base::fail(base::Code::kUsage,
                      "is not a run directory of yours and will not be deleted",
                      run.string(),
                      "Its manifest.json must name this folder, and it must belong to you.");
  if (is_held(run).value_or(false))
    return base::fail(base::Code::kUsage, "is still running and will not be deleted", run.string());
  auto parent = TRY(Folder::open(fs::canonical(folder.parent_path(), error)));
  return parent.remove(folder.filename().string());
}

base::Result<std::chrono::seconds> parse_age(std::string_view text) {
  const std::string_view trimmed = base::trim(text);
  const auto wrong = [&] {
    return base::fail(base::Code::kUsage,
                      "'" + std::string(text) + "' is not an age",
                      {},
                      "Write a number and a unit: 30s, 90m, 36h, 7d or 2w");
  };
  if (trimmed.size() < 2)
    return wrong();
  std::int64_t unit = 0;
  switch (trimmed.back()) {
    case 's': unit = 1; break;
    case 'm': unit = 60; break;
    case 'h': unit = 3600; break;
    case 'd': unit = 86400; break;
    case 'w': unit = 7 * 86400; break;
    default: return wrong();
  }
  const auto number = base::to_uint(trimmed.substr(0, trimmed.size() - 1));
  if (!number || *number > 1'000'000'000)
    return wrong();
  return std::chrono::seconds(static_cast<std::int64_t>(*number) * unit);
}

std::uint64_t size_of(const fs::path& run) {
  std::uint64_t bytes = 0;
  std::error_code error;
  auto walk = fs::recursive_directory_iterator(run, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    // A file with holes, such as a capture that is still written, holds less than its length.
    struct stat status {};
    if (::lstat(walk->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    const std::int64_t allocated = status.st_blocks * 512;
    const std::int64_t held = std::min<std::int64_t>(status.st_size, allocated);
    bytes += static_cast<std::uint64_t>(held);
  }
  return bytes;
}

}  // namespace rangescope::runs

namespace rangescope::runs::job {
namespace {

namespace fs = std::filesystem;

tl::unexpected<base::Error> stays(const fs::path& path, const char* why) {
  return base::fail(
      base::Code::kUsage, std::string(why) + " and will not be deleted", path.string());
}

/// job.json, or a rank's draft of it.
bool is_job_file(const std::string& name) {
  if (name == "job.json")
    return true;
  return name.starts_with(".job-") && name.ends_with(".json");
}

bool still_runs(const fs::path& run) {
  const auto status = read_status(run);
  const bool says_running = status && status->state == RunState::kRunning;
  return is_held(run).value_or(says_running);
}

/// One file or folder of a job. kUsage with what forbids to remove it.
base::Result<void> removable_entry(const fs::directory_entry& entry) {
  std::error_code ignored;
  const fs::path& path = entry.path();
  const std::string name = path.filename().string();
  const bool is_folder = !entry.is_symlink(ignored) && entry.is_directory(ignored);
  if (!is_folder && is_job_file(name))
    return {};
  if (!is_folder || !member_of(path))
    return stays(path, "is not a run of the job");
  const auto manifest = read_manifest(path);
  if (manifest && manifest->id != name)
    return stays(path, "is a copy of another run");
  if (still_runs(path))
    return stays(path, "is still running");
  return {};
}

/// The whole folder of a job. kUsage with what forbids to remove it.
base::Result<void> removable(const fs::path& folder) {
  if (!is_own_folder(folder) || !is_job(folder))
    return stays(folder, "is not the folder of a job of yours");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    TRY(removable_entry(*entry));
  if (error)
    return stays(folder, "cannot be read");
  return {};
}

}  // namespace

std::vector<Candidate> prunable(const fs::path& root,
                                const Retention& retention,
                                std::int64_t now_unix_ns) {
  std::vector<Candidate> candidates;
  for (const fs::path& run : list_runs(root)) {
    const auto manifest = read_manifest(run);
    if (manifest)
      candidates.push_back({run, manifest->start_unix_ns, 0});
  }
  std::set<fs::path> jobs;
  for (const fs::path& folder : list_jobs(root)) {
    const auto job = read_job(folder);
    if (job)
      candidates.push_back({folder, job->start_unix_ns, 0});
    jobs.insert(folder);
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::start_unix_ns);
  if (retention.keep)
    candidates.resize(candidates.size() - std::min(candidates.size(), *retention.keep));

  std::set<fs::path> runs_that_may_go;
  const Retention by_age{.older_than = retention.older_than};
  for (const Candidate& run : runs::prunable(root, by_age, now_unix_ns))
    runs_that_may_go.insert(run.path);
  const auto stays_there = [&](const Candidate& candidate) {
    if (!jobs.contains(candidate.path))
      return !runs_that_may_go.contains(candidate.path);
    if (is_too_young(candidate.start_unix_ns, now_unix_ns, retention))
      return true;
    return !removable(candidate.path).has_value();
  };
  std::erase_if(candidates, stays_there);
  for (Candidate& candidate : candidates)
    candidate.bytes = size_of(candidate.path);
  return candidates;
}

base::Result<void> remove_job(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  TRY(removable(whole));
  auto parent = TRY(Folder::open(fs::canonical(whole.parent_path(), error)));
  return parent.remove(folder.filename().string());
}

}  // namespace rangescope::runs::job
