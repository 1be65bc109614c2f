#include "runs/baselines.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"

namespace rangescope::runs {
namespace baselines_test {

namespace fs = std::filesystem;

class Digests : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        ("digests-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] fs::path file(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(base::write_file(folder_ / name, text));
    return folder_ / name;
  }
  fs::path folder_;
};

const fs::path kGolden = fs::path(base::source_dir) / "tests/golden/report";

TEST_F(Digests, AReportIsReadBack) {
  const auto gpu = read_report(kGolden / "gpu.json");
  ASSERT_TRUE(gpu) << gpu.error().what;
  ASSERT_FALSE(gpu->regions.empty());
  const model::DigestRegion& first = gpu->regions.front();
  EXPECT_EQ(first.path.size(), 1u);
  EXPECT_GT(first.values.at("wall_ns.inclusive"), 0);
  EXPECT_GT(first.values.at("gpu.busy_ns"), 0);
  EXPECT_GT(first.values.at("gpu.launch_latency_ns.median"), 0);
  EXPECT_FALSE(gpu->kernels.empty());
  EXPECT_FALSE(gpu->devices.empty());

  const auto nvtx = read_report(kGolden / "nvtx.json");
  ASSERT_TRUE(nvtx);
  EXPECT_FALSE(nvtx->regions.front().values.contains("gpu.busy_ns"));  // null is absent, not 0
  EXPECT_TRUE(nvtx->regions.back().is_whole_run);
}

TEST_F(Digests, OwnFunctionsAreKeptWithTheirLine) {
  auto run = read_report(kGolden / "nvtx.json");
  ASSERT_TRUE(run);
  for (model::DigestRegion& region : run->regions)
    region.cpu_interval_ns = 1e6;
  run->regions[0].own_functions = {{{"dedup", "/home/u/quad.py", "", true, 381e6, 2}}};
  const auto path = save_baseline(folder_ / "own", {"main", machine_kind(*run), 17, {*run}}, 10);
  ASSERT_TRUE(path) << path.error().what;
  const auto read = read_baseline(*path);
  ASSERT_TRUE(read) << read.error().what;
  const model::Digest& saved = read->runs.front();
  ASSERT_TRUE(saved.regions[0].own_functions);
  const model::DigestFunction& dedup = saved.regions[0].own_functions->front();
  EXPECT_EQ(dedup.name, "dedup");
  EXPECT_EQ(dedup.line, 2u);
  EXPECT_EQ(dedup.self_ns, 381e6);
  EXPECT_FALSE(saved.regions[1].own_functions) << "unknown is not empty";

  const auto report = file("report.json", R"({"schema": "rangescope.report/1", "run": {},
    "regions": [{"path": ["program"], "occurrences": 1, "cpu": {"interval_ns": 1000000,
      "own_functions": [{"function": "dedup", "file": "/home/u/quad.py", "line": 2, "module": null,
                         "python": true, "cpu_ns": 381e6}]}}]})");
  const auto reported = read_report(report);
  ASSERT_TRUE(reported) << reported.error().what;
  EXPECT_EQ(reported->regions[0].own_functions->front().line, 2u);
}

TEST_F(Digests, ABaselineIsWhatWasSaved) {
  auto run = read_report(kGolden / "gpu.json");
  ASSERT_TRUE(run);
  for (int i = 0; i < 1000; ++i)
    run->regions[0].wall_ns.push_back(i);
  const Baseline saved{"main", machine_kind(*run), 17, {*run, *run}};
  const auto path = save_baseline(folder_ / "new", saved, 10);
  ASSERT_TRUE(path) << path.error().what;
  EXPECT_EQ(json_schema_of(*path), "rangescope.baseline/1");
  const auto read = read_baseline(*path);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->name, "main");
  EXPECT_EQ(read->machine, saved.machine);
  EXPECT_EQ(read->saved_unix_ns, 17);
  ASSERT_EQ(read->runs.size(), 2u);
  const model::Digest& one = read->runs[1];
  ASSERT_EQ(one.regions.size(), run->regions.size());
  for (std::size_t i = 0; i < one.regions.size(); ++i) {
    EXPECT_EQ(one.regions[i].path, run->regions[i].path);
    EXPECT_EQ(one.regions[i].kind, run->regions[i].kind);
    EXPECT_EQ(one.regions[i].values, run->regions[i].values);
    EXPECT_EQ(one.regions[i].is_whole_run, run->regions[i].is_whole_run);
    EXPECT_EQ(one.regions[i].is_outside_ranges, run->regions[i].is_outside_ranges);
  }
  EXPECT_EQ(one.regions[0].wall_ns.size(), 10u);
  EXPECT_EQ(one.regions[0].wall_ns[9], 900);
  EXPECT_EQ(one.run.command, run->run.command);
  EXPECT_EQ(one.run.exit_code, run->run.exit_code);
  EXPECT_EQ(one.devices, run->devices);
  EXPECT_EQ(one.kernels.size(), run->kernels.size());

  const auto found = find_baseline(folder_ / "new", "main", saved.machine);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, *path);
  EXPECT_EQ(find_baseline(folder_ / "new", "main", "other").error().code,
            base::Code::kNotComparable);
  const auto slip = find_baseline(folder_ / "new", "mian", saved.machine);
  EXPECT_EQ(slip.error().code, base::Code::kNoInput);
  EXPECT_NE(slip.error().hint.find("main"), std::string::npos);
  for (const char* name : {"", "a/b", "../x", "a.b"})
    EXPECT_FALSE(save_baseline(folder_, {name, "m", 0, {*run}}));
}

TEST_F(Digests, DamageIsLocated) {
  const auto code = [](const auto& result) {
    return result ? base::Code::kInternal : result.error().code;
  };
  EXPECT_EQ(code(read_report(folder_ / "none.json")), base::Code::kNoInput);
  const std::string head = R"({"schema": "rangescope.report/1", "run": {"id": "x"}, "regions": )";
  for (const char* rest : {"[",
                           "17}",
                           "[{}]}",
                           R"([{"path": [], "occurrences": 1}]})",
                           R"([{"path": ["a"]}]})",
                           R"([{"path": ["a"], "occurrences": "many"}]})",
                           R"([{"path": ["a"], "occurrences": 1e30}]})",
                           R"([{"path": ["a"], "occurrences": 1, "samples": [[1]]}]})",
                           R"([{"path": ["a"], "occurrences": 1, "samples": 5}]})"})
    EXPECT_EQ(code(read_report(file("r.json", head + rest))), base::Code::kBadData) << rest;
  EXPECT_EQ(
      code(read_baseline(file("b.json", R"({"schema": "rangescope.baseline/1", "runs": []})"))),
      base::Code::kBadData);
  EXPECT_EQ(code(read_baseline(file("c.json", head + "[]}"))),
            base::Code::kBadData);  // another schema
  EXPECT_FALSE(json_schema_of(file("d.json", R"({"a": 1})")));
  EXPECT_FALSE(json_schema_of(file("e.json", R"(["schema"])")));
}

TEST_F(Digests, MachineKinds) {
  model::Digest run;
  EXPECT_EQ(machine_kind(run), "unknown");
  run.run.environment = {{"cpu", "AMD EPYC 9654 (TM)"}, {"cpus", "8"}};
  EXPECT_EQ(machine_kind(run), "amd-epyc-9654-tm-8-cpus");
  run.devices = {"NVIDIA H100 80GB HBM3, 132 SMs"};
  EXPECT_EQ(machine_kind(run), "nvidia-h100-80gb-hbm3");
  run.devices = {"NVIDIA H200, 132 SMs", "NVIDIA H200, 132 SMs"};
  EXPECT_EQ(machine_kind(run), "2x-nvidia-h200");
}

}  // namespace baselines_test
}  // namespace rangescope::runs
