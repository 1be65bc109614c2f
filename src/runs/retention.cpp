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

bool is_own(const fs::path& run, const Manifest& manifest) {
  struct stat status {};
  return ::lstat(run.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && manifest.id == run.filename().string();
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
    if (::lstat(walk->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes += static_cast<std::uint64_t>(
          std::min<std::int64_t>(status.st_size, status.st_blocks * 512));
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

/// May it go as a whole? kUsage with what forbids it.
base::Result<void> removable(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid() || !is_job(folder))
    return stays(folder, "is not the folder of a job of yours");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    const bool is_folder = !entry->is_symlink(ignored) && entry->is_directory(ignored);
    if (!is_folder && is_job_file(name))
      continue;
    if (!is_folder || !member_of(entry->path()))
      return stays(entry->path(), "is not a run of the job");
    if (const auto manifest = read_manifest(entry->path()); manifest && manifest->id != name)
      return stays(entry->path(), "is a copy of another run");
    const auto state = read_status(entry->path());
    if (is_held(entry->path()).value_or(state && state->state == RunState::kRunning))
      return stays(entry->path(), "is still running");
  }
  if (error)
    return stays(folder, "cannot be read");
  return {};
}

}  // namespace

std::vector<Candidate> prunable(const fs::path& root,
                                const Retention& retention,
                                std::int64_t now_unix_ns) {
  std::vector<Candidate> all;
  for (const fs::path& run : list_runs(root))
    if (const auto manifest = read_manifest(run))
      all.push_back({run, manifest->start_unix_ns, 0});
  std::set<fs::path> jobs;
  for (const fs::path& folder : list_jobs(root)) {
    const auto job = read_job(folder);
    if (job)
      all.push_back({folder, job->start_unix_ns, 0});
    jobs.insert(folder);
  }
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return a.start_unix_ns < b.start_unix_ns; });
  if (retention.keep)
    all.resize(all.size() - std::min(all.size(), *retention.keep));

  std::set<fs::path> runs_that_may_go;
  for (const auto& run : runs::prunable(root, {.older_than = retention.older_than}, now_unix_ns))
    runs_that_may_go.insert(run.path);
  std::erase_if(all, [&](const Candidate& candidate) {
    if (!jobs.contains(candidate.path))
      return !runs_that_may_go.contains(candidate.path);
    if (is_too_young(candidate.start_unix_ns, now_unix_ns, retention))
      return true;
    return !removable(candidate.path).has_value();
  });
  for (Candidate& one : all)
    one.bytes = size_of(one.path);
  return all;
}

base::Result<void> remove_job(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  TRY(removable(whole));
  auto parent = TRY(Folder::open(fs::canonical(whole.parent_path(), error)));
  return parent.remove(folder.filename().string());
}

}  // namespace rangescope::runs::job
