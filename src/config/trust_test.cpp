#include "config/trust.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "config/yaml.hpp"

namespace rangescope::config {
namespace trust_test {

namespace fs = std::filesystem;

class TrustTest : public testing::Test {
 protected:
  TrustTest() {
    std::string pattern = (fs::temp_directory_path() / "rangescope-trust-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);
    file_ = folder_ / "rangescope.yaml";
    put("report: {depth: 3}\n");
  }
  ~TrustTest() override {
    ::unsetenv("XDG_STATE_HOME");
    fs::remove_all(folder_);
  }
  void put(const std::string& text) const { std::ofstream(file_) << text; }
  std::string refused(const std::string& text) const {
    const auto document = parse_yaml(text, "FILE");
    EXPECT_TRUE(document.has_value()) << text;
    const auto ok = check_untrusted(*document, "FILE");
    return ok ? "" : ok.error().where + ": " + ok.error().what;
  }
  fs::path folder_, file_;
};

TEST_F(TrustTest, AProjectFileSaysWhatIsMeasuredAndHowItIsShownOnly) {
  for (const char* text :
       {"ranges: {include: [a], every: 2}",
        "device: h100-sxm",
        "report: {depth: 3, format: md, fold_names: auto}",
        "pipeline: {ncu: {enable: true, ncu_cli: {nvtx: {include: [a]}, metrics: [quick]}}}",
        "vars: {a: {b: 1}}",
        "workload: {command: [], env: {}}",
        "pipeline: {nsys: {path: null}}",
        "run: {share: null}"})
    EXPECT_EQ(refused(text), "") << text;
  EXPECT_EQ(refused("pipeline:\n  nsys:\n    path: /tmp/evil\n"),
            "FILE:3:11: sets pipeline.nsys.path, and you did not trust this file");
  for (const char* text : {// what is run
                           "workload: {command: [./evil]}",
                           "workload: {command: ./evil}",
                           "workload: {env: {LD_PRELOAD: ./evil.so}}",
                           "workload: {env: {PATH: .}}",
                           "workload: {env: '${vars.env}'}",
                           "pipeline: {nsys: {env: {LD_PRELOAD: x}}}",
                           "workload: {env: {OMP_NUM_THREADS: 4}}",
                           "pipeline: {ncu: {path: x}}",
                           "workload: {subset: x}",
                           "pipeline: {ncu: {ncu_cli: {section_folders: [x]}}}",
                           "pipeline: {nsys: {extra_args: [--command-file=x]}}",
                           "workload: {cwd: /}",
                           "pipeline: '${vars.p}'",
                           "pipeline: {native: {chain_injection: true}}",
                           // how often, and for how long
                           "workload: {warmup: 3}",
                           "run: {repeat: 9}",
                           "run: {retries: 9}",
                           "run: {timeout: 1ms}",
                           "pipeline: {native: {passes: relaunch}}",
                           "pipeline: {ncu: {ncu_cli: {replay_mode: application}}}",
                           "pipeline: {ncu: {ncu_cli: {kill: true}}}",
                           "pipeline: {nsys: {duration: 1s}}",
                           "pipeline: {nsys: {kill: 9}}",
                           "pipeline: {nsys: {capture_range_end: stop-shutdown}}",
                           "run: {strict: true}",
                           // what is written, where, for whom, and what goes
                           "run: {record_args: true}",
                           "run: {share: true}",
                           "run: {root: /tmp/x}",
                           "run: {dir: x}",
                           "run: {keep: 1}",
                           "run: {compress: older-than 1s}",
                           "run: {job: x}",
                           "report: {to: x}",
                           "report: {raw_cells: true}",
                           "workload: {inputs: [/etc/shadow]}",
                           "pipeline: {native: {max_capture_size: 1T}}",
                           "pipeline: {ncu: {ncu_cli: {import_source: true}}}"})
    EXPECT_NE(refused(text), "") << text;
}

TEST_F(TrustTest, TrustIsOfOneFileAsItIs) {
  EXPECT_FALSE(is_trusted(file_));
  ASSERT_TRUE(trust(file_).has_value());
  EXPECT_TRUE(is_trusted(file_));
  put("report: {depth: 4}\n");
  EXPECT_FALSE(is_trusted(file_));
  put("report: {depth: 3}\n");
  EXPECT_TRUE(is_trusted(file_));
  fs::create_directories(folder_ / "other");
  fs::copy_file(file_, folder_ / "other/rangescope.yaml");
  EXPECT_FALSE(is_trusted(folder_ / "other/rangescope.yaml"));
}

TEST_F(TrustTest, FilesThatOthersCanChangeAreNotRead) {
  EXPECT_TRUE(check_owner(file_).has_value());
  ASSERT_EQ(chmod(file_.c_str(), 0646), 0);
  EXPECT_EQ(check_owner(file_).error().code, base::Code::kPermission);
  ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_FALSE(check_owner(file_).has_value());
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(check_owner(file_).has_value());
  fs::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(check_owner(file_).error().code, base::Code::kNoInput);
  EXPECT_FALSE(is_trusted(file_));
}

TEST_F(TrustTest, FilesOfOthersAreNotRead) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(chown(file_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(check_owner(file_).error().code, base::Code::kPermission);
  ::setenv("SUDO_UID", "65534", 1);
  EXPECT_TRUE(check_owner(file_).has_value());
  ::setenv("SUDO_UID", "65533", 1);
  EXPECT_FALSE(check_owner(file_).has_value());
  ::unsetenv("SUDO_UID");
}

}  // namespace trust_test
}  // namespace rangescope::config
