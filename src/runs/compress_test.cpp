#include "runs/compress.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "runs/manifest.hpp"

namespace rangescope::runs {
namespace compress_test {

namespace fs = std::filesystem;

TEST(Compress, RawRecordingsOfARunThatStillVerifies) {
  const base::TemporaryFolder folder("rangescope-compress");
  const fs::path run = fs::path(folder.path()) / "20260101-000000-1-host";
  for (const char* name : {"nsys", "ncu"})
    fs::create_directories(run / name);
  const std::string text(100000, 'x');
  for (const char* name : {"nsys/nsys.nsys-rep",
                           "nsys/late.qdstrm",
                           "nsys/nsys.sqlite",
                           "ncu/ncu.ncu-rep",
                           "report.md"})
    ASSERT_TRUE(base::write_file(run / name, text));
  Manifest manifest;
  manifest.id = run.filename().string();
  manifest.start_unix_ns = 1;
  manifest.end_unix_ns = 2;
  manifest.files = *prove_files(run);
  ASSERT_TRUE(write_manifest(run, manifest));
  // Not as it was written: it stays as it is, and verify() goes on saying so.
  ASSERT_TRUE(base::write_file(run / "nsys/late.qdstrm", "changed"));

  const auto done = compress_run(run);
  ASSERT_TRUE(done) << base::to_string(done.error());
  EXPECT_EQ(done->files, 2u);
  EXPECT_EQ(done->bytes, 2 * text.size());
  EXPECT_LT(done->packed_bytes, 1000u);
  for (const auto& [name, there] : {std::pair{"nsys/nsys.nsys-rep", false},
                                    {"nsys/nsys.nsys-rep.zst", true},
                                    {"ncu/ncu.ncu-rep", false},
                                    {"ncu/ncu.ncu-repz", true},
                                    {"nsys/late.qdstrm", true},
                                    {"nsys/nsys.sqlite", true}})
    EXPECT_EQ(fs::exists(run / name), there) << name;
  const auto differences = verify(run);
  ASSERT_TRUE(differences);
  ASSERT_EQ(differences->size(), 1u);
  EXPECT_EQ(differences->front().path, "nsys/late.qdstrm");
  EXPECT_EQ(compress_run(run)->files, 0u);
}

TEST(Compress, SaysWhichRunsItTakes) {
  EXPECT_EQ(*parse_compress("older-than 7d"), std::chrono::hours(7 * 24));
  for (const char* wrong : {"", "7d", "older-than", "older-than x", "newer-than 7d"})
    EXPECT_FALSE(parse_compress(wrong)) << wrong;
}

}  // namespace compress_test
}  // namespace rangescope::runs
