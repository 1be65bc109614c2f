#include "runs/stages.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"

namespace rangescope::runs {
namespace stages_test {

namespace fs = std::filesystem;

TEST(Stages, CountsOverRuns) {
  const base::TemporaryFolder folder("rangescope-stages");
  Stage ok{
      .stage = "ncu", .tool = "ncu 2025.3.1", .step = "kernel", .outcome = "ok", .wall_ns = 10};
  Stage bad = ok;
  bad.outcome = "failed";
  bad.why = "ncu.unsupported_api";
  bad.wall_ns = 30;
  std::vector<fs::path> runs;
  for (const auto& stages : {std::vector{ok}, std::vector{bad, ok}, std::vector{bad}}) {
    runs.push_back(folder.path() / std::to_string(runs.size()));
    fs::create_directories(runs.back());
    ASSERT_TRUE(write_stages(runs.back(), stages).has_value());
  }
  const auto counts = count_stages(runs);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].ok, 2u);
  EXPECT_EQ(counts[0].failed, 2u);
  EXPECT_EQ(counts[0].causes,
            (std::vector<std::pair<std::string, std::uint64_t>>{{"ncu.unsupported_api", 2}}));
  EXPECT_EQ(read_stages(runs[1])->size(), 2u);
  ASSERT_TRUE(base::write_file(runs[0] / "stages.json",
                               "{\"schema\":\"rangescope.stages/1\",\"stages\":[{}]}")
                  .has_value());
  EXPECT_EQ(read_stages(runs[0]).error().code, base::Code::kBadData);
}

}  // namespace stages_test
}  // namespace rangescope::runs
