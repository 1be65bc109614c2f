#include "runs/job/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/text.hpp"
#include "runs/hold.hpp"
#include "runs/json_text.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::runs::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kJobSchema = "rangescope.job/1", kRankSchema = "rangescope.rank/1";
constexpr int kMostStarts = 10000;
constexpr std::uint32_t kMostNamed = 12;       // ranks that a sentence names
constexpr std::uint32_t kMostWorld = 1 << 20;  // a damaged job.json may say anything

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0)
    return {};
  return name;
}

tl::unexpected<base::Error> cannot(const char* what, const fs::path& path) {
  return base::fail(code_of_unwritable(errno),
                    std::string(what) + ": " + std::strerror(errno),
                    path.string(),
                    "Name a folder that every rank can write with --runs");
}

runs::OrderedJson job_json(const fs::path& folder,
                           const Place& place,
                           const std::vector<std::uint32_t>& profiled) {
  runs::OrderedJson json{{"schema", kJobSchema},
                         {"name", folder.filename().string()},
                         {"launcher", place.launcher},
                         {"key", base::printable(place.key)},
                         {"world_size", place.world}};
  json["profiled"] = nullptr;
  if (!profiled.empty())
    json["profiled"] = profiled;
  json["started_unix_ns"] = unix_now_ns();
  return json;
}

/// Writes job.json, unless another rank has written it: a link replaces no file.
base::Result<void> write_job(const fs::path& folder,
                             const Place& place,
                             const std::vector<std::uint32_t>& profiled) {
  const fs::path file = base::in_place(folder / "job.json");
  std::error_code error;
  if (fs::exists(file, error))
    return {};
  const std::string host = base::sanitize_component(host_name());
  const fs::path draft = folder / fmt::format(".job-{}-{}.json", host, ::getpid());
  TRY(runs::write_json(draft, job_json(folder, place, profiled)));
  const fs::path draft_in_place = base::in_place(draft);
  if (::link(draft_in_place.c_str(), file.c_str()) == 0 || errno == EEXIST) {
    ::unlink(draft_in_place.c_str());
    return {};
  }
  // A file system without links: the last one wins, and all write the same.
  if (::rename(draft_in_place.c_str(), file.c_str()) != 0)
    return cannot("cannot write job.json", folder);
  return {};
}

std::string rank_folder(const std::optional<std::uint32_t>& rank) {
  if (rank)
    return fmt::format("rank-{}", *rank);
  return fmt::format("rank-unknown-{}-{}", host_name(), ::getpid());
}

std::optional<std::uint32_t> number(const nlohmann::json& json, const char* name) {
  const auto value = json.find(name);
  if (value == json.end() || !value->is_number_unsigned())
    return std::nullopt;
  if (value->get<std::uint64_t>() >= 0xffffffffu)
    return std::nullopt;
  return value->get<std::uint32_t>();
}

using FoundJob = base::Result<std::optional<Job>>;

FoundJob read_found(const fs::path& folder) {
  auto job = TRY(read_job(folder));
  return std::optional(std::move(job));
}

/// The folder of a job, or one that holds a single job and no runs.
FoundJob job_in_folder(const fs::path& folder) {
  if (is_job(folder))
    return read_found(folder);
  if (runs::is_run_dir(folder))
    return std::nullopt;
  const auto jobs = list_jobs(folder);
  if (jobs.size() == 1 && runs::list_runs(folder).empty())
    return read_found(jobs.front());
  return std::nullopt;
}

/// Nothing where a run started later.
FoundJob latest_job(const std::vector<fs::path>& jobs, const std::vector<fs::path>& runs) {
  auto job = TRY(read_job(jobs.back()));
  if (runs.empty())
    return std::optional(std::move(job));
  const auto manifest = runs::read_manifest(runs.back());
  if (manifest && manifest->start_unix_ns > job.start_unix_ns)
    return std::nullopt;
  return std::optional(std::move(job));
}

std::vector<std::uint32_t> profiled_ranks(const nlohmann::json& job) {
  std::vector<std::uint32_t> ranks;
  const auto list = job.find("profiled");
  if (list == job.end() || !list->is_array())
    return ranks;
  for (const auto& rank : *list)
    if (rank.is_number_unsigned())
      ranks.push_back(rank.get<std::uint32_t>());
  return ranks;
}

/// By rank; those without one last.
std::vector<Member> members_in(const fs::path& folder) {
  std::vector<Member> members;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored))
      continue;
    if (auto member = member_of(entry->path()))
      members.push_back(std::move(*member));
  }
  const auto order = [](const Member& member) {
    return std::pair(member.rank.value_or(~0u), member.run);
  };
  std::ranges::sort(members, std::ranges::less(), order);
  return members;
}

std::size_t expected_members(const Job& job) {
  if (job.profiled.empty())
    return job.world;
  const auto is_of_job = [&](std::uint32_t rank) { return rank < job.world; };
  return static_cast<std::size_t>(std::ranges::count_if(job.profiled, is_of_job));
}

bool is_running(const Member& member) {
  const auto status = runs::read_status(member.run);
  if (status && status->state != runs::RunState::kRunning)
    return false;
  return runs::is_held(member.run).value_or(true);
}

/// How the member's program ended before it was done; nothing where it did not.
std::optional<std::string> early_end(const base::Result<runs::Status>& status) {
  if (!status)
    return "its rangescope could not write a status in time";
  if (status->state == runs::RunState::kInterrupted)
    return "killed together with rangescope";
  if (status->outcome == "timed_out")
    return "time limit";
  if (status->outcome == "program_failed" || status->outcome == "interrupted")
    return status->program;
  return std::nullopt;
}

std::string member_name(const Member& member) {
  if (member.rank)
    return fmt::format("rank {}", *member.rank);
  return member.run.filename().string();
}

/// Ranks that were to be profiled and have no run.
std::vector<std::uint32_t> missing_ranks(const Job& job) {
  std::vector<bool> has_run(std::min(job.world, kMostWorld), false);
  for (const Member& member : job.members)
    if (member.rank && *member.rank < has_run.size())
      has_run[*member.rank] = true;
  const auto is_wanted = [&](std::uint32_t rank) {
    if (job.profiled.empty())
      return true;
    return std::ranges::find(job.profiled, rank) != job.profiled.end();
  };
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < has_run.size(); ++rank)
    if (is_wanted(rank) && !has_run[rank])
      missing.push_back(rank);
  return missing;
}

/// rank.json: which rank of which job the run is.
base::Result<void> write_rank(const fs::path& run, const std::string& job, const Place& place) {
  const runs::OrderedJson rank{{"schema", kRankSchema},
                               {"job", job},
                               {"rank", json_or_null(place.rank)},
                               {"local_rank", json_or_null(place.local_rank)},
                               {"world_size", place.world},
                               {"host", base::printable(host_name())}};
  return runs::write_json(run / "rank.json", rank);
}

}  // namespace

base::Result<fs::path> make_run_dir(const fs::path& root,
                                    const Place& place,
                                    const std::vector<std::uint32_t>& profiled) {
  std::error_code error;
  fs::create_directories(root, error);
  const std::string name = base::sanitize_component(place.name);
  for (int start = 1; start <= kMostStarts; ++start) {
    fs::path folder = fs::absolute(root, error) / name;
    if (start > 1)
      folder += fmt::format(".{}", start);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return cannot("cannot make the job's folder", folder);
    const auto held = base::HeldFolder::take(folder);
    if (!held && held.error().code == base::Code::kPermission)
      continue;  // somebody else's, who could lead us elsewhere
    if (!held)
      return tl::make_unexpected(held.error());
    if (fs::exists(base::in_place(folder / "manifest.json"), error))
      continue;  // a run of that name
    TRY(write_job(folder, place, profiled));
    const auto json = TRY(runs::read_json(base::in_place(folder / "job.json"), kJobSchema));
    if (text_in(json, "key") != base::printable(place.key))
      continue;  // another start
    const fs::path run = folder / rank_folder(place.rank);
    if (::mkdir(base::in_place(run).c_str(), 0700) != 0) {
      if (errno == EEXIST)
        continue;
      return cannot("cannot make the run directory", run);
    }
    TRY(write_rank(run, folder.filename().string(), place));
    return run;
  }
  return base::fail(base::Code::kIo, "no free name for the job's folder", (root / name).string());
}

fs::path job_of(const fs::path& run) {
  std::error_code error;
  const fs::path folder = fs::absolute(run, error).lexically_normal().parent_path();
  if (!fs::exists(run / "rank.json", error) || !is_job(folder))
    return {};
  return folder;
}

std::optional<Member> member_of(const fs::path& run) {
  const auto json = runs::read_json(run / "rank.json", kRankSchema);
  if (!json)
    return std::nullopt;
  Member member{
      .run = run, .rank = number(*json, "rank"), .local_rank = number(*json, "local_rank")};
  member.world = number(*json, "world_size").value_or(0);
  member.host = text_in(*json, "host");
  return member;
}

bool is_job(const fs::path& folder) {
  return runs::read_json(folder / "job.json", kJobSchema).has_value();
}

base::Result<Job> read_job(const fs::path& folder) {
  const auto json = TRY(runs::read_json(folder / "job.json", kJobSchema));
  std::error_code error;
  Job job;
  job.folder = fs::absolute(folder, error).lexically_normal();
  if (!job.folder.has_filename())
    job.folder = job.folder.parent_path();
  job.name = job.folder.filename().string();
  job.launcher = text_in(json, "launcher");
  job.world = number(json, "world_size").value_or(0);
  const auto start = json.find("started_unix_ns");
  if (start != json.end() && start->is_number_integer())
    job.start_unix_ns = start->get<std::int64_t>();
  job.profiled = profiled_ranks(json);
  job.members = members_in(job.folder);
  return job;
}

std::vector<fs::path> list_jobs(const fs::path& root) {
  using Start = std::optional<std::int64_t>;
  return folders_by_start(root, [](const fs::path& folder) -> Start {
    const auto json = runs::read_json(folder / "job.json", kJobSchema);
    if (!json)
      return std::nullopt;
    return json->value("started_unix_ns", std::int64_t{0});
  });
}

FoundJob find_job(const fs::path& root, const std::string& said) {
  std::error_code error;
  if (fs::is_directory(said, error))
    return job_in_folder(said);
  if (fs::exists(said, error))
    return std::nullopt;
  const auto jobs = list_jobs(root);
  if (jobs.empty())
    return std::nullopt;
  const auto runs = runs::list_runs(root);
  if (said == "latest")
    return latest_job(jobs, runs);
  std::vector<fs::path> matching;
  for (const fs::path& job : jobs) {
    const std::string name = job.filename().string();
    if (name == said)
      return read_found(job);
    if (!said.empty() && name.starts_with(said))
      matching.push_back(job);
  }
  for (const fs::path& run : runs) {
    const std::string name = run.filename().string();
    if (name.starts_with(said))
      return std::nullopt;  // runs::find_run decides
  }
  if (matching.size() > 1)
    return base::fail(
        base::Code::kUsage,
        fmt::format("'{}' is the start of {} job names", base::printable(said), matching.size()),
        root.string(),
        "Give more of the name: " + matching[0].filename().string());
  if (matching.empty())
    return std::nullopt;
  return read_found(matching.front());
}

bool reports_together(const fs::path& run) {
  const auto member = member_of(run);
  if (!member || !member->rank || member->world <= 1)
    return false;
  return !job_of(run).empty();
}

std::optional<Job> claim_report(const fs::path& run) {
  auto job = read_job(job_of(run));
  if (!job)
    return std::nullopt;
  const std::size_t expected = expected_members(*job);
  if (expected == 0 || job->members.size() < expected)
    return std::nullopt;
  if (std::ranges::any_of(job->members, is_running))
    return std::nullopt;
  // Each rank looks after it has written that it is done, so that the last one sees all. Two ranks
  // may see all at once: the one that makes the file reports.
  const fs::path mark_file = job->folder / ".job-reported.json";
  const int mark = ::open(mark_file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (mark < 0)
    return std::nullopt;
  ::close(mark);
  return std::move(*job);
}

std::string ranks_text(std::vector<std::uint32_t> ranks, std::size_t limit) {
  std::ranges::sort(ranks);
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    if (parts.size() == limit)
      return base::join(parts, ", ") + fmt::format(" and {} more", ranks.size() - first);
    std::string& part = parts.emplace_back(std::to_string(ranks[first]));
    if (last > first)
      part += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return base::join(parts, ", ");
}

namespace {

std::string missing_text(const std::vector<std::uint32_t>& ranks, std::uint32_t world) {
  std::string_view noun = "rank";
  if (ranks.size() > 1)
    noun = "ranks";
  return fmt::format("no run of {} {} of {}", noun, ranks_text(ranks, kMostNamed), world);
}

std::string ended_early_text(std::vector<std::string> members) {
  const std::size_t count = members.size();
  if (count > kMostNamed) {
    members.resize(kMostNamed);
    members.push_back(fmt::format("{} more", count - kMostNamed));
  }
  return base::join(members, ", ");
}

}  // namespace

std::vector<model::Loss> losses_of(const Job& job) {
  std::vector<std::uint32_t> running;
  std::vector<std::string> ended_early;
  for (const Member& member : job.members) {
    const auto status = runs::read_status(member.run);
    if (status && status->state == runs::RunState::kRunning) {
      running.push_back(member.rank.value_or(0));
      continue;
    }
    if (const auto end = early_end(status))
      ended_early.push_back(fmt::format("{} ({})", member_name(member), *end));
  }
  std::vector<model::Loss> losses;
  const std::vector<std::uint32_t> missing = missing_ranks(job);
  if (!missing.empty())
    losses.push_back({"ranks_missing", missing.size(), missing_text(missing, job.world)});
  if (!ended_early.empty())
    losses.push_back({"ranks_ended", ended_early.size(), ended_early_text(ended_early)});
  if (!running.empty())
    losses.push_back({"ranks_running",
                      running.size(),
                      "still running: rank " + ranks_text(running, kMostNamed)});
  return losses;
}

}  // namespace rangescope::runs::job
