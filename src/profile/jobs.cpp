#include "profile/jobs.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "analyze/ranks/collectives.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/usage.hpp"
#include "wire/launchers.hpp"

namespace rangescope::profile {

namespace fs = std::filesystem;

base::Result<std::vector<std::uint32_t>> parse_ranks(const std::vector<std::string>& texts,
                                                     const std::string& where) {
  constexpr unsigned kMostListed = 1 << 20;
  std::vector<std::uint32_t> ranks;
  for (const std::string& text : texts) {
    for (const std::string_view part : base::split(text, ',')) {
      const auto dash = part.find('-');
      const std::string from(part.substr(0, dash)),
          to(dash == std::string_view::npos ? from : part.substr(dash + 1));
      unsigned first = 0, last = 0;
      if (!wire::parse_rank(from.c_str(), first) || !wire::parse_rank(to.c_str(), last) ||
          last < first || last - first > kMostListed)
        return base::fail(base::Code::kUsage,
                          "'" + base::printable(part) + "' is not a rank",
                          where,
                          "Write numbers from 0 with commas between: 0,8,16-23");
      for (unsigned rank = first; rank <= last; ++rank)
        ranks.push_back(rank);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<std::uint32_t> ranks_asked_for(const config::Config& config) {
  return parse_ranks(config.list("run.ranks"), "--ranks").value_or(std::vector<std::uint32_t>{});
}

base::Result<runs::job::Place> place_in_job(const config::Config& config) {
  runs::job::Place place = runs::job::place_here();
  TRY(parse_ranks(config.list("run.ranks"), "--ranks"));
  if (const auto name = config.text("run.job"); name && !name->empty()) {
    place.key = *name + " " + place.key;
    place.name = *name;
  } else if (!place.rank || place.world < 2) {
    place.name.clear();  // the only process of its launcher
  }
  return place;
}

base::Error run_bare(const collect::Request& request) {
  for (const auto& [name, value] : request.env)
    ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& word : request.command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  base::stop_outliving_file_limit();
  if (::chdir(request.cwd.c_str()) == 0)
    ::execvp(argv.front(), argv.data());
  return {base::Code::kNoInput,
          std::string("the program cannot be run: ") + std::strerror(errno),
          request.command.front(),
          {}};
}

void label_processes(const fs::path& capture, model::Session& session) {
  const fs::path run = runs::run_of(capture);
  if (run.empty())
    return;
  const auto member = runs::job::member_of(run);
  const std::string host = member ? member->host : runs::run_info(run).host;
  for (model::Process& process : session.processes) {
    process.host = session.strings.intern(host);
    if (!member)
      continue;
    process.run = session.strings.intern(run.filename().string());
    if (process.rank == model::kNone && member->rank)
      process.rank = *member->rank;
    if (process.local_rank == model::kNone && member->local_rank)
      process.local_rank = *member->local_rank;
    if (process.world == 0)
      process.world = member->world;
  }
}

tl::unexpected<base::Error> nothing_of(const runs::job::Job& job,
                                       const std::vector<std::uint32_t>& ranks) {
  std::string problem = "no rank of the job has left a run";
  fs::path run = job.folder;
  if (!job.members.empty()) {
    problem = "no rank of the job has captured anything";
    if (!ranks.empty())
      problem = "the job has no capture of rank " + runs::job::ranks_text(ranks);
    run = job.members.front().run;
  }
  return base::fail(base::Code::kNothingCaptured,
                    problem,
                    job.folder.string(),
                    "See what happened: rangescope runs show " + base::shell_quote(run.string()));
}

void add_job(const runs::job::Job& job, model::Report& report) {
  for (model::Loss& loss : runs::job::losses_of(job))
    report.losses.push_back(std::move(loss));
  const bool has_communication =
      std::any_of(report.regions.begin(), report.regions.end(), [](const model::Region& region) {
        return analyze::is_communication(region.domain);
      });
  const bool may_use_mpi =
      job.launcher == "openmpi" || job.launcher == "pmix" || job.launcher == "slurm";
  if (may_use_mpi && !has_communication)
    report.notes.push_back(
        "no rank made an MPI call: the program makes none, links MPI statically, or ran with "
        "--no-mpi");
}

analyze::RunFacts facts_of_job(const runs::job::Job& job,
                               const fs::path& first,
                               std::span<const fs::path> ranks) {
  analyze::RunFacts facts{.info = runs::run_info(first), .named = named_input({}, job.folder)};
  facts.info.id = job.name;
  facts.info.usage = runs::usage_together(ranks);
  facts.info.exit_code.reset();
  facts.info.signal.reset();
  return facts;
}

namespace {

/// Of `ranks` where there are any.
std::vector<const runs::job::Member*> members_of(const runs::job::Job& job,
                                                 const std::vector<std::uint32_t>& ranks) {
  std::vector<const runs::job::Member*> out;
  for (const runs::job::Member& member : job.members)
    if (ranks.empty() ||
        (member.rank && std::find(ranks.begin(), ranks.end(), *member.rank) != ranks.end()))
      out.push_back(&member);
  return out;
}

}  // namespace

base::Result<Analyzed> analyze_job(const runs::job::Job& job,
                                   const analyze::Options& options,
                                   const read::Options& reading) {
  std::vector<fs::path> inputs;
  std::vector<fs::path> ranks;
  std::vector<std::uint32_t> empty;
  fs::path first;
  for (const runs::job::Member* member : members_of(job, reading.ranks)) {
    ranks.push_back(member->run);
    const auto captures = filled_captures(member->run);
    if (captures.empty())
      empty.push_back(member->rank.value_or(0));
    if (first.empty() && !captures.empty())
      first = member->run;
    inputs.insert(inputs.end(), captures.begin(), captures.end());
  }
  if (inputs.empty())
    return nothing_of(job, reading.ranks);
  auto analyzed =
      analyze_inputs(inputs, first, options, reading, {}, facts_of_job(job, first, ranks));
  if (!analyzed)
    return analyzed;
  // One sampler at a time can hold a device: what another rank sampled is not lost.
  std::erase_if(analyzed->report.losses, [&](const model::Loss& loss) {
    const auto& samples = analyzed->session.samples;
    return loss.kind == model::LossKind("not_sampled") &&
           std::any_of(samples.begin(), samples.end(), [&](const model::SampleStream& stream) {
             return stream.other_clock && !stream.uuid.empty() &&
                    loss.detail.find(stream.uuid) != std::string::npos;
           });
  });
  if (reading.ranks.empty())
    add_job(job, analyzed->report);
  if (!empty.empty())
    analyzed->report.losses.push_back(
        {"ranks_unreadable",
         empty.size(),
         "nothing was captured in rank " + runs::job::ranks_text(empty)});
  return analyzed;
}

namespace {

struct NamedInput {
  fs::path run;  ///< "" where it is a file
  std::vector<fs::path> captures;
};

/// What the words name: runs first, in the order in which they started, then files. So the words'
/// order does not change a report.
base::Result<std::vector<NamedInput>> inputs_by_start(const fs::path& root,
                                                      const std::vector<std::string>& named) {
  std::vector<NamedInput> inputs;
  for (const std::string& word : named) {
    NamedInput& input = inputs.emplace_back();
    input.captures = TRY(find_inputs(root, word, input.run));
  }
  const auto place_of = [](const NamedInput& input) {
    std::int64_t start_unix_ns = 0;
    if (!input.run.empty())
      if (const auto manifest = runs::read_manifest(input.run))
        start_unix_ns = manifest->start_unix_ns;
    return std::tuple(input.run.empty(), start_unix_ns, input.run.string());
  };
  std::ranges::stable_sort(inputs, {}, place_of);
  return inputs;
}

/// A job of many ranks is reported from their digests, where these have all that is asked for.
bool use_digests(const runs::job::Job& job, const analyze::Options& options) {
  return job.members.size() > kFewRanks && digests_suffice(options);
}

}  // namespace

base::Result<Analyzed> analyze_named(const fs::path& root,
                                     const std::vector<std::string>& named,
                                     const analyze::Options& options,
                                     const read::Options& reading,
                                     JobFrom from,
                                     const fs::path& merged) {
  if (named.size() == 1) {
    auto job = TRY(runs::job::find_job(root, named.front()));
    if (job && from == JobFrom::kAuto)
      from = use_digests(*job, options) ? JobFrom::kDigests : JobFrom::kCaptures;
    if (job && from == JobFrom::kDigests)
      return analyze_digests(*job, options, merged);
    if (job)
      return analyze_job(*job, options, reading);
  }
  if (!merged.empty())
    return base::fail(base::Code::kUsage,
                      "a merged digest is of one parallel job, and no job was named",
                      "--merged",
                      "Name the job's folder: rangescope report JOB --merged FILE");
  fs::path run;
  std::vector<fs::path> inputs;
  std::set<fs::path> runs;  // a file that is in no run: ""
  for (auto& [its_run, found] : TRY(inputs_by_start(root, named))) {
    if (run.empty())
      run = its_run;
    if (its_run.empty() && !found.empty())
      its_run = runs::run_of(found.front());
    runs.insert(its_run);
    inputs.insert(inputs.end(), found.begin(), found.end());
  }
  auto analyzed = analyze_inputs(inputs, run, options, reading);
  if (analyzed && runs.size() > 1)
    analyzed->report.run.usage = runs::usage_together(std::vector(runs.begin(), runs.end()));
  const auto no_rank = [](const model::ReportProcess& process) { return !process.rank; };
  if (analyzed && !reading.ranks.empty() &&
      std::ranges::all_of(analyzed->report.processes, no_rank))
    return base::fail(
        base::Code::kUsage, "these files do not record ranks", "--rank", "Leave out --rank.");
  return analyzed;
}

namespace {

/// What is added to the clocks of a job's ranks for that of its first host: by digests, which is
/// quick.
std::map<std::uint32_t, double> clock_offsets(const runs::job::Job& job) {
  std::set<std::string> hosts;
  for (const runs::job::Member& member : job.members)
    hosts.insert(member.host);
  std::map<std::uint32_t, double> out;
  if (hosts.size() < 2)
    return out;
  if (const auto analyzed = analyze_digests(job, {}))
    for (const model::Rank& rank : analyzed->report.ranks)
      out[rank.rank] = rank.clock_offset_ns;
  return out;
}

using Use = std::function<base::Result<void>(
    const Analyzed&, const std::string&, std::optional<std::uint32_t>)>;
using Read = std::function<base::Result<Analyzed>(const read::Options&)>;

/// Hands over each rank that `read` finds, read by itself. `job`: its name, or "" for the run's.
base::Result<void> use_each_rank(const Read& read,
                                 const read::Options& reading,
                                 std::string job,
                                 std::optional<std::uint32_t> rank,
                                 const Use& use) {
  auto all_ranks = read(reading);
  if (!all_ranks)
    return base::Result<void>(base::fail(std::move(all_ranks)));
  if (job.empty())
    job = all_ranks->report.run.id;
  std::vector<std::uint32_t> ranks;
  for (const model::Rank& member : all_ranks->report.ranks)
    ranks.push_back(member.rank);
  if (ranks.size() < 2) {
    if (!rank && !ranks.empty())
      rank = ranks.front();
    return use(*all_ranks, job, rank);
  }
  all_ranks->session = {};
  read::Options one_rank = reading;
  for (const std::uint32_t number : ranks) {
    one_rank.ranks = {number};
    const auto analyzed = read(one_rank);
    if (!analyzed)
      return base::Result<void>(tl::make_unexpected(analyzed.error()));
    const bool holds_several = analyzed->report.ranks.size() > 1;  // one file with all of them
    if (holds_several)
      return use(*analyzed, job, {});
    TRY(use(*analyzed, job, number));
  }
  return {};
}

}  // namespace

base::Result<void> each_rank(
    const fs::path& root,
    const std::vector<std::string>& named,
    const analyze::Options& options,
    const read::Options& reading,
    const std::function<base::Result<void>(
        const Analyzed&, const std::string&, std::optional<std::uint32_t>)>& use) {
  auto job = TRY(named.size() == 1 ? runs::job::find_job(root, named.front())
                                   : base::Result<std::optional<runs::job::Job>>());
  if (!job) {
    const auto read_named = [&](const read::Options& only) {
      return analyze_named(root, named, options, only);
    };
    return use_each_rank(read_named, reading, {}, {}, use);
  }
  base::Error last{base::Code::kNothingCaptured,
                   "the job has no capture of these ranks",
                   job->folder.string(),
                   {}};
  std::size_t used = 0;
  const std::map<std::uint32_t, double> offsets = clock_offsets(*job);
  for (const runs::job::Member* member : members_of(*job, reading.ranks)) {
    const auto captures = filled_captures(member->run);
    bool was_read = false;
    const auto read_member = [&](const read::Options& only) -> base::Result<Analyzed> {
      if (captures.empty())
        return base::fail(
            base::Code::kNothingCaptured, "nothing was captured", member->run.string());
      auto analyzed = analyze_inputs(captures, member->run, options, only);
      was_read = analyzed.has_value();
      if (!was_read)
        return analyzed;
      for (model::Rank& rank : analyzed->report.ranks)
        if (const auto offset = offsets.find(rank.rank); offset != offsets.end())
          rank.clock_offset_ns = offset->second;
      return analyzed;
    };
    const auto done = use_each_rank(read_member, reading, job->name, member->rank, use);
    if (done) {
      ++used;
      continue;
    }
    if (was_read)
      return done;  // what was to be done with it failed
    last = done.error();
    base::warn(member->run.filename().string() + " is left out: " + last.what);
  }
  if (used == 0)
    return tl::make_unexpected(std::move(last));
  if (reading.ranks.empty())
    for (const model::Loss& loss : runs::job::losses_of(*job))
      base::warn(loss.detail);
  return {};
}

}  // namespace rangescope::profile
