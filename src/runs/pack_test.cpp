#include "runs/pack.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/fs.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/stages.hpp"

namespace rangescope::runs {
namespace pack_test {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "rangescope-pack-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

fs::path make_run(const fs::path& root) {
  auto run = make_run_dir(root);
  EXPECT_TRUE(run.has_value());
  Manifest manifest;
  manifest.id = run->filename().string();
  EXPECT_TRUE(write_manifest(*run, manifest).has_value());
  return *run;
}

TEST(Pack, ThereAndBackAgain) {
  Folder folder;
  const fs::path run = make_run(folder.path / "a");
  const std::string large(1'000'001, 'x');
  const std::string deep = "ncu/regions/" + std::string(90, 'r') + "/" + std::string(60, 's');
  fs::create_directories((run / deep).parent_path());
  fs::create_directories(run / "nsys");
  ASSERT_TRUE(base::write_file(run / "large.bin", large).has_value());
  ASSERT_TRUE(base::write_file(run / deep, "deep").has_value());
  ASSERT_TRUE(base::write_file(run / "empty", "").has_value());
  ASSERT_TRUE(base::write_file(run / "nsys/nsys.nsys-rep", "TOKEN=1").has_value());
  const auto packed = pack_run(run, folder.path / "run.tar.zst", false);
  ASSERT_TRUE(packed.has_value()) << base::to_string(packed.error());
  EXPECT_EQ(packed->files, 4u);
  EXPECT_LT(packed->packed_bytes, 10'000u);
  const auto back = unpack_run(folder.path / "run.tar.zst", folder.path / "b");
  ASSERT_TRUE(back.has_value()) << base::to_string(back.error());
  EXPECT_EQ(back->path, folder.path / "b" / run.filename());
  EXPECT_EQ(base::read_file(back->path / "large.bin").value(), large);
  EXPECT_EQ(base::read_file(back->path / deep).value(), "deep");
  EXPECT_EQ(base::read_file(back->path / "empty").value(), "");
  EXPECT_FALSE(fs::exists(back->path / "nsys/nsys.nsys-rep"));
  EXPECT_EQ(unpack_run(folder.path / "run.tar.zst", folder.path / "b").error().code, base::Code::kUsage);
  if (std::system("tar --version > /dev/null 2>&1 && zstd --version > /dev/null 2>&1") == 0) {
    EXPECT_EQ(std::system(("zstd -dc '" + (folder.path / "run.tar.zst").string() + "' | tar tf - > /dev/null").c_str()),
              0);
  }
}

TEST(Pack, DamageAndStrangersLeaveNothing) {
  Folder folder;
  const fs::path run = make_run(folder.path / "a");
  ASSERT_TRUE(base::write_file(run / "data", std::string(100'000, 'q')).has_value());
  const fs::path archive = folder.path / "run.tar.zst";
  ASSERT_TRUE(pack_run(run, archive, true).has_value());
  const std::string whole = base::read_file(archive).value();
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    ASSERT_TRUE(base::write_file(archive, whole.substr(0, cut)).has_value());
    ASSERT_FALSE(unpack_run(archive, folder.path / "b").has_value()) << cut;
  }
  ASSERT_TRUE(base::write_file(archive, "no archive").has_value());
  EXPECT_EQ(unpack_run(archive, folder.path / "b").error().code, base::Code::kBadData);
  EXPECT_TRUE(list_runs(folder.path / "b").empty());
  EXPECT_EQ(pack_run(folder.path, archive, true).error().code, base::Code::kUsage);
}

TEST(Pack, PathsThatLeaveTheFolderAreRefused) {
  Folder folder;
  fs::create_directories(folder.path / "run/x");
  std::ofstream(folder.path / "evil") << "x";
  const std::string archive = (folder.path / "evil.tar.zst").string();
  if (std::system("zstd --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no zstd program";
  ASSERT_EQ(std::system(("cd '" + (folder.path / "run").string() + "' && tar -c -P ../evil 2>/dev/null | zstd -q -o '" +
                         archive + "'")
                            .c_str()),
            0);
  EXPECT_EQ(unpack_run(archive, folder.path / "out").error().code, base::Code::kBadData);
}

TEST(Stages, CountsOverRuns) {
  Folder folder;
  Stage ok{.stage = "ncu", .tool = "ncu 2025.3.1", .step = "kernel", .outcome = "ok", .wall_ns = 10};
  Stage bad = ok;
  bad.outcome = "failed";
  bad.why = "ncu.unsupported_api";
  bad.wall_ns = 30;
  std::vector<fs::path> runs;
  for (const auto& stages : {std::vector{ok}, std::vector{bad, ok}, std::vector{bad}}) {
    runs.push_back(folder.path / std::to_string(runs.size()));
    fs::create_directories(runs.back());
    ASSERT_TRUE(write_stages(runs.back(), stages).has_value());
  }
  const auto counts = count_stages(runs);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].ok, 2u);
  EXPECT_EQ(counts[0].failed, 2u);
  EXPECT_EQ(counts[0].causes, (std::vector<std::pair<std::string, std::uint64_t>>{{"ncu.unsupported_api", 2}}));
  EXPECT_EQ(read_stages(runs[1])->size(), 2u);
  ASSERT_TRUE(
      base::write_file(runs[0] / "stages.json", "{\"schema\":\"rangescope.stages/1\",\"stages\":[{}]}").has_value());
  EXPECT_EQ(read_stages(runs[0]).error().code, base::Code::kBadData);
}

}  // namespace pack_test
}  // namespace rangescope::runs
