// Every page of cut and altered reports: nothing crashes, and every failure says where it is.
#include "ncu_pages/pages.hpp"
#include "read/ncu/report/golden_test.hpp"
#include "read/ncu/report/reader.hpp"

namespace rangescope::ncu_pages {
namespace damage_test {

/// Everything that can be done with a file; nothing may crash, and failures say where.
void use(std::string_view bytes) {
  const auto file = File::parse(bytes, "damaged");
  if (!file) {
    EXPECT_FALSE(file.error().where.empty());
    return;
  }
  const auto session = to_session(*file);
  if (!session) {
    EXPECT_FALSE(session.error().where.empty());
  }
  for (const Page page : {Page::kDetails, Page::kRaw, Page::kSource, Page::kSession}) {
    PageOptions options;
    options.page = page;
    options.csv = page == Page::kRaw;
    std::vector<model::Loss> losses;
    std::size_t printed = 0;
    const auto done = print_pages(
        *file, options, [&](std::string_view text) { printed += text.size(); }, losses);
    if (!done) {
      EXPECT_FALSE(done.error().what.empty());
    }
  }
}

TEST(NcuPagesDamage, AReportCutAtTwentyPlaces) {
  const auto packed = base::read_file(golden_path("r_decode.ncu-repz"));
  for (std::size_t i = 1; i < 20; ++i) use(std::string_view(*packed).substr(0, packed->size() * i / 20));
}

TEST(NcuPagesDamage, FlippedBytesNeverCrash) {
  std::uint64_t state = 88172645463325252ull;
  const auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
  for (const char* name : {"ar_decode", "k_workerp", "r_async"}) {
    const std::string bytes = golden(std::string(name) + ".ncu-repz");
    for (int i = 0; i < 100; ++i) {
      std::string damaged = bytes;
      for (int k = 0; k < 6; ++k) damaged[random() % damaged.size()] = static_cast<char>(random() >> 32);
      use(damaged);
    }
  }
}

}  // namespace damage_test
}  // namespace rangescope::ncu_pages
