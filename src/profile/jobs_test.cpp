#include "profile/jobs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "profile/composed_test.hpp"
#include "profile/record.hpp"
#include "runs/manifest.hpp"
#include "wire/launchers.hpp"

namespace rangescope::profile {
namespace jobs_test {

namespace fs = std::filesystem;
using Ranks = std::vector<std::uint32_t>;

Ranks ranks_in(const std::vector<std::string>& texts) {
  const auto ranks = parse_ranks(texts, "--ranks");
  EXPECT_TRUE(ranks) << base::to_string(ranks.error());
  return ranks.value_or(Ranks{});
}

TEST(ParseRanks, AreInOrderAndOnceEach) {
  EXPECT_EQ(ranks_in({"8,0", "2-4", "3,3"}), (Ranks{0, 2, 3, 4, 8}));
  EXPECT_EQ(ranks_in({"7-7"}), Ranks{7});
  EXPECT_EQ(ranks_in({}), Ranks{});
}

TEST(ParseRanks, WhatIsNoRankIsRefusedByItself) {
  for (const char* text : {"", "x", "-1", "1-", "4-2", "1,,2", "0-2000000", "1 2", "0x1"}) {
    const auto ranks = parse_ranks({text}, "--rank");
    ASSERT_FALSE(ranks) << text;
    EXPECT_EQ(ranks.error().code, base::Code::kUsage) << text;
    EXPECT_EQ(ranks.error().where, "--rank") << text;
  }
  EXPECT_EQ(parse_ranks({"0,b"}, "--rank").error().what, "'b' is not a rank");
}

TEST(RanksAskedFor, AreThoseOfTheConfiguration) {
  EXPECT_EQ(ranks_asked_for(composed({"run.ranks=[2,0-1]"})), (Ranks{0, 1, 2}));
  EXPECT_EQ(ranks_asked_for(composed({})), Ranks{});
}

/// Removes what launchers may have put into this environment.
void be_no_rank() {
  for (const char* name : wire::kRankVariables)
    ::unsetenv(name);
  for (const char* name : wire::kWorldVariables)
    ::unsetenv(name);
  for (const char* name :
       {"TORCHELASTIC_RUN_ID", "OMPI_MCA_ess_base_jobid", "SLURM_STEP_ID", "PMIX_NAMESPACE"})
    ::unsetenv(name);
}

/// Becomes a process of Open MPI.
void be_rank(const char* rank, const char* world) {
  be_no_rank();
  ::setenv("OMPI_MCA_ess_base_jobid", "77", 1);
  ::setenv("OMPI_COMM_WORLD_RANK", rank, 1);
  ::setenv("OMPI_COMM_WORLD_SIZE", world, 1);
}

TEST(PlaceInJob, OfTheOnlyProcessOfALauncherIsNone) {
  be_rank("0", "1");
  const auto alone = place_in_job(composed({}));
  be_rank("1", "2");
  const auto second = place_in_job(composed({}));
  be_no_rank();
  ASSERT_TRUE(alone && second);
  EXPECT_EQ(alone->name, "");
  EXPECT_EQ(second->name, "openmpi-77");
  EXPECT_EQ(second->rank, 1u);
}

TEST(PlaceInJob, ANameThatWasGivenIsTheJobs) {
  be_rank("1", "2");
  const auto named = place_in_job(composed({"run.job=nightly"}));
  be_no_rank();
  const auto without_launcher = place_in_job(composed({"run.job=nightly"}));
  ASSERT_TRUE(named && without_launcher);
  EXPECT_EQ(named->name, "nightly");
  EXPECT_TRUE(named->key.starts_with("nightly 77")) << named->key;
  EXPECT_EQ(without_launcher->name, "nightly");
  EXPECT_EQ(without_launcher->rank, std::nullopt);
}

TEST(PlaceInJob, WrongRanksAreRefused) {
  const auto place = place_in_job(composed({"run.ranks=[first]"}));
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().what, "'first' is not a rank");
}

/// How the program of a rank ended.
struct RankEnd {
  int code = 0;
  const char* outcome = "ok";
};

/// A job in a folder of its own; its ranks are runs without captures.
class Job : public testing::Test {
 protected:
  static constexpr std::int64_t kSecond_ns = 1'000'000'000;

  fs::path add_rank(std::uint32_t rank, std::uint32_t world, RankEnd end = {}) {
    const runs::job::Place place{.launcher = "slurm",
                                 .name = "slurm-1.0",
                                 .key = "1.0",
                                 .rank = rank,
                                 .local_rank = rank % 2,
                                 .world = world};
    const auto folder = runs::job::make_run_dir(root_.path(), place, {});
    EXPECT_TRUE(folder) << base::to_string(folder.error());
    auto record = RunRecord::begin_rank(*folder, {"app"}, {});
    EXPECT_TRUE(record);
    const base::Ended ended{
        .exit_code = end.code,
        .start_unix_ns = 100 * kSecond_ns,
        .wall_ns = kSecond_ns,
        .usage = base::Ended::Usage{.user_ns = 1000, .system_ns = 10, .peak_rss_bytes = 4096}};
    EXPECT_TRUE(record->ended(ended));
    EXPECT_TRUE(record->finish(end.code, end.outcome, "", {}));
    return *folder;
  }
  [[nodiscard]] runs::job::Job job() const {
    const auto job = runs::job::read_job(root_.path() / "slurm-1.0");
    EXPECT_TRUE(job);
    return job.value_or(runs::job::Job{});
  }

  base::TemporaryFolder root_{"rangescope-jobs"};
};

TEST_F(Job, WithoutAnyRunSaysSo) {
  const auto error = nothing_of({.folder = "/runs/slurm-1.0"}, {}).value();
  EXPECT_EQ(error.code, base::Code::kNothingCaptured);
  EXPECT_EQ(error.what, "no rank of the job has left a run");
  EXPECT_EQ(error.hint, "See what happened: rangescope runs show /runs/slurm-1.0");
}

TEST_F(Job, WithoutCapturesNamesTheRanksThatWereAskedForAndTheFirstRun) {
  const fs::path first = add_rank(0, 2);
  add_rank(1, 2);
  EXPECT_EQ(nothing_of(job(), {}).value().what, "no rank of the job has captured anything");
  const auto error = nothing_of(job(), {4, 1, 5}).value();
  EXPECT_EQ(error.what, "the job has no capture of rank 1, 4-5");
  EXPECT_EQ(error.hint, "See what happened: rangescope runs show " + first.string());
}

TEST_F(Job, OfRanksWithoutCapturesIsNotAnalyzed) {
  add_rank(0, 2);
  add_rank(1, 2);
  const auto analyzed = analyze_job(job(), {}, {});
  ASSERT_FALSE(analyzed);
  EXPECT_EQ(analyzed.error().code, base::Code::kNothingCaptured);
}

TEST_F(Job, FactsAreThoseOfTheFirstRunButForItsEnd) {
  const std::vector<fs::path> ranks = {add_rank(0, 2), add_rank(1, 2, {3, "program_failed"})};
  const auto facts = facts_of_job(job(), ranks.back(), ranks);
  EXPECT_EQ(facts.info.id, "slurm-1.0");
  EXPECT_EQ(facts.info.command, std::vector<std::string>{"app"});
  EXPECT_EQ(facts.info.exit_code, std::nullopt);
  ASSERT_TRUE(facts.info.usage);
  EXPECT_EQ(facts.info.usage->user_ns, 2000);
  EXPECT_EQ(facts.info.usage->system_ns, 20);
}

TEST_F(Job, ARankThatDiedOrIsMissingIsALoss) {
  add_rank(0, 3);
  add_rank(1, 3, {3, "program_failed"});
  model::Report report;
  add_job(job(), report);
  std::vector<std::string> kinds;
  for (const model::Loss& loss : report.losses)
    kinds.emplace_back(loss.kind.id());
  EXPECT_EQ(kinds, (std::vector<std::string>{"ranks_missing", "ranks_ended"}));
  EXPECT_EQ(report.losses.back().detail, "rank 1 (exit code 3)");
}

TEST_F(Job, OfALauncherOfMpiWithoutItsCallsHasANote) {
  model::Report without, with;
  const runs::job::Job slurm{.launcher = "slurm"};
  add_job(slurm, without);
  ASSERT_EQ(without.notes.size(), 1u);
  EXPECT_TRUE(without.notes.front().starts_with("no rank made an MPI call"));
  with.regions.emplace_back().domain = "MPI";
  add_job(slurm, with);
  EXPECT_TRUE(with.notes.empty());
  model::Report torchrun;
  add_job({.launcher = "torchrun"}, torchrun);
  EXPECT_TRUE(torchrun.notes.empty());
}

TEST_F(Job, ItsProcessesGetWhatTheRunKnowsAndTheyDoNot) {
  const fs::path run = add_rank(1, 4);
  model::Session session;
  session.processes.resize(2);
  session.processes[1].rank = 9;
  session.processes[1].world = 16;
  label_processes(run / "native", session);
  EXPECT_EQ(session.processes[0].rank, 1u);
  EXPECT_EQ(session.processes[0].local_rank, 1u);
  EXPECT_EQ(session.processes[0].world, 4u);
  EXPECT_EQ(session.strings.view(session.processes[0].run), "rank-1");
  EXPECT_EQ(session.processes[1].rank, 9u);
  EXPECT_EQ(session.processes[1].world, 16u);
}

TEST_F(Job, AFileThatIsInNoRunIsLabelledWithNothing) {
  model::Session session;
  session.processes.emplace_back();
  label_processes(root_.path() / "app.nsys-rep", session);
  EXPECT_EQ(session.processes[0].rank, model::kNone);
  EXPECT_EQ(session.processes[0].host, model::StringId{0});
}

TEST_F(Job, AMergedDigestNeedsAJob) {
  const auto analyzed = analyze_named(root_.path(), {"a", "b"}, {}, {}, JobFrom::kAuto, "job.rsd");
  ASSERT_FALSE(analyzed);
  EXPECT_EQ(analyzed.error().code, base::Code::kUsage);
  EXPECT_EQ(analyzed.error().where, "--merged");
}

TEST_F(Job, RanksThatCannotBeReadAreWarnedOfEach) {
  add_rank(0, 2);
  add_rank(1, 2);
  testing::internal::CaptureStderr();
  int used = 0;
  const auto done =
      each_rank(root_.path(),
                {"slurm-1.0"},
                {},
                {},
                [&](const Analyzed&, const std::string&, std::optional<std::uint32_t>) {
                  ++used;
                  return base::Result<void>();
                });
  const std::string warnings = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, base::Code::kNothingCaptured);
  EXPECT_EQ(used, 0);
  EXPECT_NE(warnings.find("rank-0 is left out: nothing was captured"), std::string::npos);
  EXPECT_NE(warnings.find("rank-1 is left out: nothing was captured"), std::string::npos);
}

TEST(RunBare, AProgramThatCannotBeRunIsNamed) {
  const base::Error error = run_bare({.command = {"./no-such-program"}, .cwd = fs::current_path()});
  EXPECT_EQ(error.code, base::Code::kNoInput);
  EXPECT_EQ(error.where, "./no-such-program");
}

}  // namespace jobs_test
}  // namespace rangescope::profile
