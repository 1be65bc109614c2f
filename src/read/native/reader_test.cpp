#include "read/native/reader.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "wire/native.hpp"

namespace rangescope::read::native {
namespace native_reader_test {

namespace fs = std::filesystem;

std::string capture() {
  auto bytes =
      base::read_file(std::string(base::source_dir) + "/tests/golden/native/v1_zoo_0.rstrace");
  EXPECT_TRUE(bytes);
  return std::move(*bytes);
}

std::uint64_t lost(const model::Session& session, std::string_view kind) {
  std::uint64_t count = 0;
  for (const model::Loss& loss : session.losses)
    count += loss.kind.id() == kind ? loss.count : 0;
  return count;
}

// One process read a clock of its own (faketime): its ranges lie a day from those of the others.
TEST(NativeReader, ClocksThatStandApartAreTold) {
  for (const std::int64_t by_s : {0, 5, 86'400, -86'400}) {
    const base::TemporaryFolder folder("rangescope-clocks");
    std::string bytes = capture();
    EXPECT_TRUE(base::write_file(folder.path() / "1.0.rstrace", bytes));
    std::int64_t monotonic = 0;
    char* const at = bytes.data() + offsetof(wire::native::FileHeader, monotonic_ns);
    std::memcpy(&monotonic, at, sizeof monotonic);
    monotonic += by_s * 1'000'000'000;
    std::memcpy(at, &monotonic, sizeof monotonic);
    EXPECT_TRUE(base::write_file(folder.path() / "2.0.rstrace", bytes));
    const auto session = kReader.read(folder.path(), {});
    ASSERT_TRUE(session);
    EXPECT_EQ(lost(*session, "clocks_apart"), std::abs(by_s) > 60 ? 1u : 0u) << by_s;
  }
}

// Its GPU file holds windows that were chosen over the whole run, and kernels whose ends CUPTI got
// wrong.
TEST(NativeReader, OfACaptureWithABudgetForTracingTheRangesAreRead) {
  const fs::path golden = fs::path(base::source_dir) / "tests/golden/native-gpu/launch";
  const base::TemporaryFolder folder("rangescope-budget");
  fs::copy(golden, folder.path());
  const auto whole = kReader.read(folder.path(), {});
  ASSERT_TRUE(whole);
  ASSERT_GT(whole->kernels.size(), 0u);
  EXPECT_EQ(lost(*whole, "gpu_unavailable"), 0u);
  const fs::path file = folder.path() / "2567.0.rstrace";
  auto bytes = base::read_file(file);
  ASSERT_TRUE(bytes);
  bytes->at(offsetof(wire::native::FileHeader, flags)) = static_cast<char>(wire::native::kOverhead);
  ASSERT_TRUE(base::write_file(file, *bytes));
  const auto session = kReader.read(folder.path(), {});
  ASSERT_TRUE(session);
  EXPECT_EQ(session->ranges.size(), whole->ranges.size());
  EXPECT_EQ(session->kernels.size() + session->launches.size(), 0u);
  EXPECT_EQ(lost(*session, "gpu_unavailable"), 1u);
}

// Each link would be followed from within each other: 2^40 times.
TEST(NativeReader, RelaunchesThatLinkBackAreReadOnce) {
  const base::TemporaryFolder folder("rangescope-relaunch");
  EXPECT_TRUE(base::write_file(folder.path() / "1.0.rstrace", capture()));
  for (const char* name : {"relaunch-2", "relaunch-3"})
    fs::create_directory_symlink(".", folder.path() / name);
  EXPECT_TRUE(kReader.read(folder.path(), {}));
}

}  // namespace native_reader_test
}  // namespace rangescope::read::native
