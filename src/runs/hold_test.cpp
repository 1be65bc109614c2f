// Whose a run is: the lock while it goes on, its owner, its name, its modes; and what removal never
// leaves.
#include "runs/hold.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "runs/imports.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"
#include "runs/status.hpp"

namespace rangescope::runs {
namespace hold_test {

namespace fs = std::filesystem;

class HeldRuns : public testing::Test {
 protected:
  HeldRuns() {
    std::string pattern = (fs::temp_directory_path() / "rangescope-hold-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~HeldRuns() override { fs::remove_all(root_); }

  fs::path make(const std::string& name, const std::string& id) {
    const fs::path run = root_ / name;
    fs::create_directories(run / "native");
    std::ofstream(run / "native/1.rstrace") << "captured";
    EXPECT_TRUE(write_manifest(run, {.id = id, .start_unix_ns = 1, .end_unix_ns = 2}).has_value());
    return run;
  }
  static unsigned mode(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  }

  fs::path root_;
};

TEST_F(HeldRuns, ARunIsHeldUntilItsProcessEndsHoweverThatIs) {
  const fs::path run = make("a", "a");
  ASSERT_TRUE(write_running(run).has_value());
  EXPECT_EQ(is_held(run), std::nullopt);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto hold = Hold::take(run);
    if (write(ready[1], hold ? "y" : "n", 1) != 1)
      _exit(1);
    pause();
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  // The process id in status.json is ours and alive, but what counts is the lock: the same in
  // another PID namespace.
  EXPECT_EQ(is_held(run), true);
  EXPECT_EQ(read_status(run)->state, RunState::kRunning);
  EXPECT_TRUE(prunable(root_, {.keep = 0}, 10).empty());
  EXPECT_EQ(remove_run(run).error().code, base::Code::kUsage);
  EXPECT_FALSE(Hold::take(run).has_value());
  EXPECT_TRUE(fs::exists(run / "native/1.rstrace"));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(is_held(run), false);
  EXPECT_EQ(read_status(run)->state, RunState::kInterrupted);
  EXPECT_EQ(prunable(root_, {.keep = 0}, 10).size(), 1u);
  { EXPECT_TRUE(Hold::take(run).has_value()); }
  EXPECT_FALSE(fs::exists(run / ".lock"));  // a run that ended holds none
}

TEST_F(HeldRuns, ACopiedManifestProvesNothing) {
  const fs::path run = make("thesis", "20260101-000000-1-host");
  EXPECT_TRUE(prunable(root_, {.keep = 0}, 10).empty());
  EXPECT_EQ(remove_run(run).error().code, base::Code::kUsage);
  EXPECT_TRUE(fs::exists(run / "native/1.rstrace"));
}

TEST_F(HeldRuns, RunsOfOthersStay) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root to give a folder away";
  const fs::path run = make("a", "a");
  ASSERT_EQ(chown(run.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(prunable(root_, {.keep = 0}, 10).empty());
  EXPECT_FALSE(remove_run(run).has_value());
}

TEST_F(HeldRuns, RemovalStaysOnOneFileSystem) {
  const fs::path run = make("a", "a"), precious = root_ / "precious";
  fs::create_directories(precious);
  std::ofstream(precious / "kept") << "x";
  fs::create_directories(run / "bound");
  const pid_t child = fork();
  if (child == 0) {  // 77: no mounts here
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(precious.c_str(), (run / "bound").c_str(), nullptr, MS_BIND, nullptr) != 0)
      _exit(77);
    const auto removed = remove_run(run);
    _exit(!removed && removed.error().code == base::Code::kUsage ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "bind mounts are not allowed here";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(precious / "kept"));
  EXPECT_TRUE(fs::exists(run / "native/1.rstrace"));  // nothing was removed before it was seen
  ASSERT_TRUE(remove_run(run).has_value());
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(HeldRuns, RemovalReachesAnyDepth) {
  const fs::path run = make("a", "a");
  constexpr int kLevels = 300;  // more than are open at once
  constexpr const char* kName = "a path longer than PATH_MAX";
  int folder = open(run.c_str(), O_RDONLY | O_DIRECTORY);
  for (int level = 0; level < kLevels; ++level) {
    ASSERT_EQ(mkdirat(folder, kName, 0700), 0);
    const int below = openat(folder, kName, O_RDONLY | O_DIRECTORY);
    ASSERT_GE(below, 0);
    close(folder);
    folder = below;
  }
  close(openat(folder, "file", O_WRONLY | O_CREAT, 0600));
  close(folder);
  const auto removed = remove_run(run);
  EXPECT_TRUE(removed.has_value()) << removed.error().what;
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(HeldRuns, ARunIsPrivateUntilItIsShared) {
  const auto run = make_run_dir(root_);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(mode(*run), 0700u);
  fs::create_directories(*run / "nsys");
  std::ofstream(*run / "nsys/x") << "x";
  seal(*run);
  EXPECT_EQ(mode(*run / "nsys"), 0700u);
  EXPECT_EQ(mode(*run / "nsys/x"), 0600u);
  const mode_t before = umask(027);
  EXPECT_TRUE(share(*run).has_value());
  umask(before);
  seal(*run);
  EXPECT_EQ(mode(*run), 0750u);
  EXPECT_EQ(mode(*run / "nsys"), 0750u);
  EXPECT_EQ(mode(*run / "nsys/x"), 0640u);
}

TEST_F(HeldRuns, FilesThatStrangersPutThereDoNotHangUsNorFillTheMemory) {
  fs::create_directories(root_ / "pipe");
  ASSERT_EQ(mkfifo((root_ / "pipe/manifest.json").c_str(), 0600), 0);
  fs::create_directories(root_ / "sparse");
  std::ofstream(root_ / "sparse/manifest.json") << "{";
  fs::resize_file(root_ / "sparse/manifest.json", std::uintmax_t{20} << 30);
  make("good", "good");
  EXPECT_EQ(list_runs(root_).size(), 1u);
  // What a manifest or import names lies in the run.
  const fs::path run = make("out", "out");
  for (const char* path :
       {"/etc/passwd", "../good/manifest.json", "native/../../good/manifest.json", ""}) {
    EXPECT_TRUE(write_manifest(run, {.id = "out", .end_unix_ns = 2, .files = {{path, {1, "0"}}}})
                    .has_value());
    EXPECT_EQ(read_manifest(run).error().code, base::Code::kBadData) << path;
    EXPECT_TRUE(write_imports(run, {{.file = path, .given_path = "x"}}).has_value());
    EXPECT_EQ(read_imports(run).error().code, base::Code::kBadData) << path;
  }
}

}  // namespace hold_test
}  // namespace rangescope::runs
