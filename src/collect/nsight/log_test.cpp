// Logs that somebody kept, as ncu 2025.3.1 and nsys 2025.3.1 wrote them on an H200 (tests/golden)
// and as 2022 to 2024, CUDA and PyTorch write them: the first cause is the one to mend.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "collect/nsight/outcome.hpp"

namespace rangescope::collect {
namespace log_test {

std::string recorded(const std::string& name) {
  const auto text =
      base::read_file(std::filesystem::path(base::source_dir) / "tests/golden" / name);
  EXPECT_TRUE(text.has_value()) << name;
  return text.value_or("");
}

TEST(Logs, RecordedOnesNameTheirCauseFirst) {
  const std::pair<const char*, const char*> kLogs[] = {
      {"ncu-out/badmetric.out", "ncu.unknown_metric"},
      {"ncu-out/badmode.out", "ncu.usage"},
      {"ncu-out/badsec.out", "ncu.unknown_section"},
      {"ncu-out/badset.out", "ncu.unknown_set"},
      {"ncu-out/k_comma.out", "ncu.only_push_pop"},
      {"ncu-out/k_semi.out", "ncu.only_start_end"},
      {"ncu-out/pt_ncu_range.out", "ncu.unsupported_api"},
      {"ncu-out/r_alloca.out", "ncu.unsupported_api"},
      {"ncu-out/r_graph.out", "ncu.unsupported_api"},
      {"ncu-out/r_miss.out", "ncu.only_push_pop"},
      {"ncu-out/psum.out", "ncu.usage"},
      {"nsys-out/g1.out", "nsys.never_started"},
      {"nsys-out/g4.out", "nsys.never_started"}};
  for (const auto& [file, cause] : kLogs) {
    const auto said = read_log(recorded(file));
    ASSERT_FALSE(said.empty()) << file;
    EXPECT_EQ(said.front().id, cause) << file;
    EXPECT_FALSE(said.front().cure.empty()) << file;
    EXPECT_FALSE(said.front().evidence.empty()) << file;
  }
  for (const char* good : {"ncu-out/k_decode.out", "ncu-out/r_decode.out", "nsys-out/g2.out"})
    EXPECT_TRUE(read_log(recorded(good)).empty())
        << good << ": " << read_log(recorded(good)).front().id;
}

TEST(Logs, TheDeepestCauseGoesFirstAndItsConsequencesGo) {
  const auto first = [](std::string_view log) {
    const auto said = read_log(log);
    return said.empty() ? std::string() : said.front().id;
  };
  EXPECT_EQ(
      first(
          "==PROF== Connected to process 1\nRuntimeError: Found no NVIDIA driver on your system.\n"
          "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were "
          "profiled.\n"),
      "cuda.no_driver");
  const auto cooperative = read_log(
      "CUDA error: too many blocks in cooperative launch\n==ERROR== The application returned an "
      "error code (1).\n");
  ASSERT_EQ(cooperative.size(), 1u);
  EXPECT_EQ(cooperative.front().id, "cuda.cooperative_too_large");
  EXPECT_EQ(first("==WARNING== No kernels were profiled.\n==WARNING== Profiling kernels launched "
                  "by child processes "
                  "requires the --target-processes all option.\n"),
            "ncu.children");
  EXPECT_EQ(first("==WARNING== No ranges were profiled.\n"), "ncu.nothing_matched");
  EXPECT_EQ(first("ERROR: Report 'cuda_gpu_kern_sum' could not be found.\n"), "nsys.no_report");
  EXPECT_EQ(first("SKIPPED: x.sqlite does not contain CUDA kernel data.\n"), "nsys.no_cuda");
  EXPECT_EQ(first("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA "
                  "GPU Performance "
                  "Counters on the target device 0.\n"),
            "ncu.permission");
  EXPECT_EQ(first("step 1 loss 0.25\nstep 2 loss 0.24\n"), "");
  EXPECT_EQ(read_log("==ERROR== Unsupported API during capture (cuGraphLaunch)\n").front().value,
            "app-range");
}

}  // namespace log_test
}  // namespace rangescope::collect
