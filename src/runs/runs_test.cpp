#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "base/fs.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/provenance.hpp"
#include "runs/retention.hpp"
#include "runs/status.hpp"
#include "wire/native.hpp"

namespace rangescope::runs {
namespace runs_test {

namespace fs = std::filesystem;

class Runs : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "runs_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  static void put(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // A finished run with one capture.
  fs::path make_run(const std::string& name, std::int64_t start_unix_ns) {
    const fs::path run = root_ / name;
    put(run / "native" / "7.rstrace", "captured");
    Manifest manifest{.id = name,
                      .tool = "rangescope 0",
                      .argv = {"app", "a b"},
                      .start_unix_ns = start_unix_ns,
                      .end_unix_ns = start_unix_ns + 1,
                      .exit_code = 0};
    manifest.files = prove_files(run).value();
    EXPECT_TRUE(write_manifest(run, manifest));
    EXPECT_TRUE(write_done(run, {.state = RunState::kDone, .exit_code = 0, .outcome = "ok"}));
    return run;
  }
  fs::path root_;
};

TEST_F(Runs, StartedAtOnceNeverCollide) {
  std::vector<std::thread> threads;
  std::vector<fs::path> made(16);
  for (std::size_t i = 0; i < made.size(); ++i)
    threads.emplace_back([&, i] { made[i] = make_run_dir(root_).value(); });
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(std::set<fs::path>(made.begin(), made.end()).size(), made.size());
  for (const auto& path : made)
    EXPECT_TRUE(fs::is_directory(path));
}

TEST_F(Runs, ARootThatIsAFileIsRefused) {
  put(root_ / "file", "");
  const auto made = make_run_dir(root_ / "file");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().where, (root_ / "file").string());
}

TEST_F(Runs, ManifestReadsBack) {
  const fs::path run = make_run("a", 1'700'000'000'123'000'000);
  const auto manifest = read_manifest(run);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->argv, (std::vector<std::string>{"app", "a b"}));
  EXPECT_EQ(manifest->exit_code, 0);
  EXPECT_EQ(manifest->files.at("native/7.rstrace").bytes, 8u);
  const std::string text = base::read_file(run / "manifest.json").value();
  EXPECT_NE(text.find("\"start\": \"2023-11-14T22:13:20.123Z\""), std::string::npos) << text;
}

TEST_F(Runs, BytesThatAreNotUtf8StayReadable) {
  fs::create_directories(root_ / "a");
  ASSERT_TRUE(
      write_manifest(root_ / "a", {.id = "a", .tool = "t", .argv = {"x\xff"}, .start_unix_ns = 1}));
  EXPECT_EQ(read_manifest(root_ / "a")->argv.front(), "x\\xff");
}

TEST_F(Runs, VerifyNamesEveryDifference) {
  const fs::path run = make_run("a", 1);
  put(run / "native" / "8.rstrace", "1");
  EXPECT_EQ(verify(run)->size(), 1u);  // not in the manifest
  put(run / "native" / "7.rstrace", "cAptured");
  put(run / "report.md", "made later");
  auto differences = verify(run).value();
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].path + " " + differences[0].kind, "native/7.rstrace changed");
  EXPECT_EQ(differences[1].path + " " + differences[1].kind,
            "native/8.rstrace not in the manifest");
  put(run / "native" / "7.rstrace", "captured!");
  EXPECT_EQ(verify(run)->front().kind, "9 bytes instead of 8");
  fs::remove(run / "native" / "7.rstrace");
  EXPECT_EQ(verify(run)->front().kind, "missing");
}

TEST_F(Runs, ACaptureThatIsStillWrittenIsNotHashed) {
  const fs::path run = make_run("a", 1);
  put(run / "native" / "8.rstrace", "begun");
  fs::resize_file(run / "native" / "8.rstrace", 1 << 30);
  const auto files = prove_files(run).value();
  EXPECT_TRUE(files.contains("native/7.rstrace"));
  EXPECT_FALSE(files.contains("native/8.rstrace"));
  EXPECT_EQ(verify(run)->front().kind, "still being written");
  EXPECT_LT(size_of(run), 1u << 20);
  EXPECT_EQ(written_bytes(run / "native" / "8.rstrace"), 1u << 30);  // no header tells
  wire::native::FileHeader header{};
  std::memcpy(header.magic, wire::native::kMagic, sizeof header.magic);
  header.used_bytes = 8192;
  put(run / "native" / "8.rstrace",
      std::string(reinterpret_cast<const char*>(&header), sizeof header));
  fs::resize_file(run / "native" / "8.rstrace", 1 << 30);
  EXPECT_EQ(written_bytes(run / "native" / "8.rstrace"), 8192u);
}

TEST_F(Runs, AnUnfinishedRunHasNothingToVerify) {
  fs::create_directories(root_ / "a");
  ASSERT_TRUE(write_manifest(root_ / "a", {.id = "a", .start_unix_ns = 1}));
  EXPECT_EQ(verify(root_ / "a").error().code, base::Code::kBadData);
}

TEST_F(Runs, AKilledRunShowsAsInterrupted) {
  ASSERT_TRUE(write_running(root_));
  EXPECT_EQ(read_status(root_)->state, RunState::kRunning);  // that is us
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(write_running(root_) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(read_status(root_)->state, RunState::kInterrupted);
  EXPECT_EQ(read_status(root_)->outcome, "interrupted");
}

TEST_F(Runs, APidThatWasGivenAwayAgainIsNotOurs) {
  ASSERT_TRUE(write_running(root_));
  std::string text = base::read_file(root_ / "status.json").value();
  const auto at = text.find("\"started\": ") + 11;
  text.insert(at, "1");
  put(root_ / "status.json", text);
  EXPECT_EQ(read_status(root_)->state, RunState::kInterrupted);
}

TEST_F(Runs, StatusReadsBack) {
  ASSERT_TRUE(write_done(
      root_,
      {.state = RunState::kDone,
       .exit_code = 83,
       .outcome = "data_loss",
       .message = "m",
       .program = "exit code 0",
       .losses = {{"torn_tail", 3, "cut"}},
       .findings = {{"program.no_nvtx", "?", model::Grade::kFail, "f", "h", {"c"}, "w"}}}));
  const auto status = read_status(root_);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->exit_code, 83);
  ASSERT_EQ(status->losses.size(), 1u);
  EXPECT_EQ(status->losses[0].severity, model::Severity::kWarning);
  ASSERT_EQ(status->findings.size(), 1u);
  EXPECT_EQ(status->findings[0].id, "program.no_nvtx");
  EXPECT_EQ(status->findings[0].verdict, model::Grade::kFail);
  EXPECT_EQ(status->findings[0].commands, std::vector<std::string>{"c"});
}

TEST_F(Runs, AreFoundByPathNameBeginningAndLatest) {
  make_run("20260101-000000-1", 1);
  make_run("20260102-000000-2", 2);
  EXPECT_EQ(find_run(root_, "latest")->filename(), "20260102-000000-2");
  EXPECT_EQ(find_run(root_, "20260101")->filename(), "20260101-000000-1");
  EXPECT_EQ(find_run(root_, (root_ / "20260101-000000-1").string())->filename(),
            "20260101-000000-1");
  EXPECT_EQ(find_run(root_, "2026").error().code, base::Code::kUsage);
  EXPECT_EQ(find_run(root_, "20260101-000000-2").error().hint,
            "did you mean '20260101-000000-1' or '20260102-000000-2'?");
}

TEST_F(Runs, PruneTouchesOnlyWhatIsOurs) {
  make_run("old", 1'000'000'000);
  make_run("new", 9'000'000'000);
  put(root_ / "mine" / "precious.txt", "x");
  put(root_ / "foreign" / "manifest.json", "{\"schema\": \"something.else/1\"}");
  put(root_ / "broken" / "manifest.json", "{");
  fs::create_directories(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "old", root_ / "link");
  const auto all = prunable(root_, {.keep = 0}, 10'000'000'000);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].path.filename(), "old");
  EXPECT_FALSE(remove_run(root_ / "mine"));
  EXPECT_FALSE(remove_run(root_ / "foreign"));
  EXPECT_FALSE(remove_run(root_ / "link"));
  ASSERT_TRUE(remove_run(all[0].path));
  EXPECT_FALSE(fs::exists(root_ / "old"));
  EXPECT_TRUE(fs::exists(root_ / "mine" / "precious.txt"));
}

TEST_F(Runs, PruneNeverFollowsLinks) {
  const fs::path run = make_run("a", 1);
  put(root_ / "outside" / "kept.txt", "x");
  fs::create_directory_symlink(root_ / "outside", run / "link");
  ASSERT_TRUE(remove_run(run));
  EXPECT_TRUE(fs::exists(root_ / "outside" / "kept.txt"));
}

TEST_F(Runs, KeepAndAge) {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  for (int day = 1; day <= 5; ++day)
    make_run("day" + std::to_string(day), day * kDay);
  const auto names = [&](const Retention& retention) {
    std::string list;
    for (const auto& candidate : prunable(root_, retention, 6 * kDay))
      list += candidate.path.filename().string() + " ";
    return list;
  };
  EXPECT_EQ(names({.keep = 2}), "day1 day2 day3 ");
  EXPECT_EQ(names({.older_than = parse_age("3d").value()}), "day1 day2 day3 ");
  EXPECT_EQ(names({.keep = 4, .older_than = parse_age("2d").value()}), "day1 ");
  EXPECT_EQ(names({.older_than = parse_age("20000w").value()}), "") << "in ns, no number holds it";
  ASSERT_TRUE(write_running(root_ / "day1"));
  EXPECT_EQ(names({.keep = 4}), "") << "a run that still runs never goes";
}

TEST(Age, Forms) {
  EXPECT_EQ(parse_age("7d")->count(), 7 * 86400);
  EXPECT_EQ(parse_age("2w")->count(), 14 * 86400);
  for (const char* wrong : {"", "d", "7", "-1d", "7y", "1.5h"})
    EXPECT_FALSE(parse_age(wrong)) << wrong;
}

TEST(Provenance, KeepsNoSecrets) {
  EXPECT_TRUE(is_allowed_variable("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(is_allowed_variable("AWS_SECRET_ACCESS_KEY"));
  EXPECT_FALSE(is_allowed_variable("HOME"));
}

TEST_F(Runs, ProvenanceIsWrittenAndRead) {
  ::setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  ::setenv("RANGESCOPE_TEST_TOKEN", "hush-hush", 1);
  const Provenance seen = look(root_);
  EXPECT_FALSE(seen.facts.at("kernel").empty());
  EXPECT_EQ(seen.variables.at("CUDA_VISIBLE_DEVICES"), "3");
  ASSERT_TRUE(write_provenance(root_, seen));
  EXPECT_EQ(read_provenance(root_)->facts, seen.facts);
  EXPECT_EQ(base::read_file(root_ / "env.json")->find("hush"), std::string::npos);
}

TEST_F(Runs, ProvenanceHasTheVersionsOfThePackagesThatTheProgramsPythonSees) {
  const fs::path packages = root_ / "venv/lib/python3.11/site-packages";
  for (const char* package : {"torch-2.11.0+cu130.dist-info",
                              "transformers-5.1.0.dist-info",
                              "torchvision-0.1.dist-info"})
    fs::create_directories(packages / package);
  auto facts = look(root_, {(root_ / "venv/bin/python").string(), "train.py"}).facts;
  std::erase_if(facts, [](const auto& fact) { return !fact.first.starts_with("python."); });
  EXPECT_EQ(facts,
            (std::map<std::string, std::string>{{"python.torch", "2.11.0+cu130"},
                                                {"python.transformers", "5.1.0"}}));
}

}  // namespace runs_test
}  // namespace rangescope::runs
