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
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

runs::OrderedJson or_null(const std::optional<std::uint32_t>& value) {
  return value ? runs::OrderedJson(*value) : runs::OrderedJson(nullptr);
}

tl::unexpected<base::Error> cannot(const char* what, const fs::path& path) {
  const base::Code code =
      errno == EACCES || errno == EROFS ? base::Code::kPermission : base::Code::kIo;
  return base::fail(code,
                    std::string(what) + ": " + std::strerror(errno),
                    path.string(),
                    "Name a folder that every rank can write with --runs");
}

/// job.json, unless another rank has written it. A link takes no name that is taken.
base::Result<void> say_job(const fs::path& folder,
                           const Place& place,
                           const std::vector<std::uint32_t>& profiled) {
  std::error_code error;
  if (fs::exists(base::in_place(folder / "job.json"), error))
    return {};
  runs::OrderedJson json{{"schema", kJobSchema},
                         {"name", folder.filename().string()},
                         {"launcher", place.launcher},
                         {"key", base::printable(place.key)},
                         {"world_size", place.world}};
  json["profiled"] = profiled.empty() ? runs::OrderedJson(nullptr) : runs::OrderedJson(profiled);
  json["started_unix_ns"] = unix_now_ns();
  const fs::path mine =
      folder / fmt::format(".job-{}-{}.json", base::sanitize_component(host_name()), ::getpid());
  TRY(runs::write_json(mine, json));
  const bool linked =
      ::link(base::in_place(mine).c_str(), base::in_place(folder / "job.json").c_str()) == 0 ||
      errno == EEXIST;
  if (!linked) {  // a file system without links: the last one wins, and all say the same
    if (::rename(base::in_place(mine).c_str(), base::in_place(folder / "job.json").c_str()) != 0)
      return cannot("cannot write job.json", folder);
    return {};
  }
  ::unlink(base::in_place(mine).c_str());
  return {};
}

std::optional<std::uint32_t> number(const nlohmann::json& json, const char* name) {
  const auto value = json.find(name);
  if (value == json.end() || !value->is_number_unsigned())
    return std::nullopt;
  if (value->get<std::uint64_t>() >= 0xffffffffu)
    return std::nullopt;
  return value->get<std::uint32_t>();
}

}  // namespace

base::Result<fs::path> make_run_dir(const fs::path& root,
                                    const Place& place,
                                    const std::vector<std::uint32_t>& profiled) {
  std::error_code error;
  fs::create_directories(root, error);
  const std::string name = base::sanitize_component(place.name);
  for (int start = 1; start <= kMostStarts; ++start) {
    const fs::path folder =
        fs::absolute(root, error) / (start == 1 ? name : fmt::format("{}.{}", name, start));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return cannot("cannot make the job's folder", folder);
    const auto held = base::HeldFolder::take(folder);
    if (!held && held.error().code == base::Code::kPermission)
      continue;  // somebody else's, who could lead us elsewhere
    if (!held)
      return tl::make_unexpected(held.error());
    if (fs::exists(base::in_place(folder / "manifest.json"), error))
      continue;  // a run of that name
    TRY(say_job(folder, place, profiled));
    const auto json = TRY(runs::read_json(base::in_place(folder / "job.json"), kJobSchema));
    if (text_in(json, "key") != base::printable(place.key))
      continue;  // another start
    const fs::path run =
        folder / (place.rank ? fmt::format("rank-{}", *place.rank)
                             : fmt::format("rank-unknown-{}-{}", host_name(), ::getpid()));
    if (::mkdir(base::in_place(run).c_str(), 0700) != 0) {
      if (errno == EEXIST)
        continue;
      return cannot("cannot make the run directory", run);
    }
    const runs::OrderedJson rank{{"schema", kRankSchema},
                                 {"job", folder.filename().string()},
                                 {"rank", or_null(place.rank)},
                                 {"local_rank", or_null(place.local_rank)},
                                 {"world_size", place.world},
                                 {"host", base::printable(host_name())}};
    TRY(runs::write_json(run / "rank.json", rank));
    return run;
  }
  return base::fail(base::Code::kIo, "no free name for the job's folder", (root / name).string());
}

fs::path job_of(const fs::path& run) {
  std::error_code error;
  const fs::path folder = fs::absolute(run, error).lexically_normal().parent_path();
  return fs::exists(run / "rank.json", error) && is_job(folder) ? folder : fs::path();
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
  if (const auto start = json.find("started_unix_ns");
      start != json.end() && start->is_number_integer())
    job.start_unix_ns = start->get<std::int64_t>();
  if (const auto list = json.find("profiled"); list != json.end() && list->is_array())
    for (const auto& rank : *list)
      if (rank.is_number_unsigned())
        job.profiled.push_back(rank.get<std::uint32_t>());
  for (fs::directory_iterator entry(job.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored))
      continue;
    if (auto member = member_of(entry->path()))
      job.members.push_back(std::move(*member));
  }
  const auto order = [](const Member& m) { return std::pair(m.rank.value_or(~0u), m.run); };
  std::sort(job.members.begin(), job.members.end(), [&](const auto& a, const auto& b) {
    return order(a) < order(b);
  });
  return job;
}

std::vector<fs::path> list_jobs(const fs::path& root) {
  return folders_by_start(root, [](const fs::path& folder) {
    const auto json = runs::read_json(folder / "job.json", kJobSchema);
    return json ? std::optional(json->value("started_unix_ns", std::int64_t{0})) : std::nullopt;
  });
}

base::Result<std::optional<Job>> find_job(const fs::path& root, const std::string& said) {
  std::error_code error;
  const auto read = [](const fs::path& folder) -> base::Result<std::optional<Job>> {
    auto job = TRY(read_job(folder));
    return std::optional(std::move(job));
  };
  if (fs::is_directory(said, error)) {
    if (is_job(said))
      return read(said);
    if (runs::is_run_dir(said))
      return std::nullopt;
    if (const auto inside = list_jobs(said); inside.size() == 1 && runs::list_runs(said).empty())
      return read(inside[0]);
    return std::nullopt;
  }
  if (fs::exists(said, error))
    return std::nullopt;
  const auto jobs = list_jobs(root);
  if (jobs.empty())
    return std::nullopt;
  const auto runs = runs::list_runs(root);
  if (said == "latest") {
    auto job = TRY(read_job(jobs.back()));
    if (!runs.empty()) {
      const auto manifest = runs::read_manifest(runs.back());
      if (manifest && manifest->start_unix_ns > job.start_unix_ns)
        return std::nullopt;
    }
    return std::optional(std::move(job));
  }
  std::vector<fs::path> matching;
  for (const fs::path& job : jobs) {
    const std::string name = job.filename().string();
    if (name == said)
      return read(job);
    if (!said.empty() && name.starts_with(said))
      matching.push_back(job);
  }
  for (const fs::path& run : runs)
    if (run.filename().string().starts_with(said))
      return std::nullopt;  // runs::find_run has the rest to say
  if (matching.size() > 1)
    return base::fail(
        base::Code::kUsage,
        fmt::format("'{}' is the start of {} job names", base::printable(said), matching.size()),
        root.string(),
        "Give more of the name: " + matching[0].filename().string());
  return matching.empty() ? base::Result<std::optional<Job>>(std::nullopt) : read(matching.front());
}

bool reports_together(const fs::path& run) {
  const auto member = member_of(run);
  return member && member->rank && member->world > 1 && !job_of(run).empty();
}

std::optional<Job> claim_report(const fs::path& run) {
  auto job = read_job(job_of(run));
  if (!job)
    return std::nullopt;
  std::size_t expected = job->profiled.empty() ? job->world : 0;
  for (const std::uint32_t rank : job->profiled)
    expected += rank < job->world ? 1 : 0;
  const auto runs_still = [&](const Member& member) {
    const auto status = runs::read_status(member.run);
    return (!status || status->state == runs::RunState::kRunning) &&
           runs::is_held(member.run).value_or(true);
  };
  if (expected == 0 || job->members.size() < expected ||
      std::any_of(job->members.begin(), job->members.end(), runs_still))
    return std::nullopt;
  // Each rank looks after it has written that it is done, so that the last one sees all; of two
  // that do, one makes it.
  const int mark = ::open(
      (job->folder / ".job-reported.json").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (mark < 0)
    return std::nullopt;
  ::close(mark);
  return std::move(*job);
}

std::string ranks_text(std::vector<std::uint32_t> ranks, std::size_t limit) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    if (parts.size() == limit)
      return base::join(parts, ", ") + fmt::format(" and {} more", ranks.size() - i);
    parts.push_back(last == i ? std::to_string(ranks[i])
                              : fmt::format("{}-{}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return base::join(parts, ", ");
}

std::vector<model::Loss> losses_of(const Job& job) {
  std::vector<std::uint32_t> missing, running;
  std::vector<std::string> died;
  std::vector<char> seen(std::min(job.world, kMostWorld), 0);
  for (const Member& member : job.members) {
    const std::string name =
        member.rank ? fmt::format("rank {}", *member.rank) : member.run.filename().string();
    if (member.rank && *member.rank < seen.size())
      seen[*member.rank] = 1;
    const auto status = runs::read_status(member.run);
    if (!status) {
      died.push_back(name + " (its rangescope could not write a status in time)");
    } else if (status->state == runs::RunState::kRunning) {
      running.push_back(member.rank.value_or(0));
    } else if (status->state == runs::RunState::kInterrupted) {
      died.push_back(name + " (killed together with rangescope)");
    } else if (status->outcome == "program_failed" || status->outcome == "timed_out" ||
               status->outcome == "interrupted") {
      died.push_back(fmt::format(
          "{} ({})", name, status->outcome == "timed_out" ? "time limit" : status->program));
    }
  }
  for (std::uint32_t rank = 0; rank < seen.size(); ++rank) {
    const bool wanted =
        job.profiled.empty() ||
        std::find(job.profiled.begin(), job.profiled.end(), rank) != job.profiled.end();
    if (seen[rank] == 0 && wanted)
      missing.push_back(rank);
  }
  std::vector<model::Loss> losses;
  if (!missing.empty())
    losses.push_back({"ranks_missing",
                      missing.size(),
                      fmt::format("no run of {} {} of {}",
                                  missing.size() > 1 ? "ranks" : "rank",
                                  ranks_text(missing, kMostNamed),
                                  job.world)});
  if (!died.empty()) {
    const std::size_t count = died.size();
    if (count > kMostNamed)
      died.resize(kMostNamed), died.push_back(fmt::format("{} more", count - kMostNamed));
    losses.push_back({"ranks_ended", count, base::join(died, ", ")});
  }
  if (!running.empty())
    losses.push_back({"ranks_running",
                      running.size(),
                      "still running: rank " + ranks_text(running, kMostNamed)});
  return losses;
}

}  // namespace rangescope::runs::job
