// The catalogue: ids are unique and well formed, every text is fit to print, and the page in docs/
// is the catalogue.
#include "doctor/causes.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"

namespace rangescope::doctor {
namespace causes_test {

TEST(Causes, AreWellFormed) {
  std::set<std::string> seen;
  for (const Chapter& chapter : chapters()) {
    EXPECT_FALSE(chapter.causes.empty()) << chapter.name;
    for (const Cause& cause : chapter.causes) {
      const std::string id(cause.id);
      EXPECT_TRUE(id.starts_with(std::string(chapter.name) + ".")) << id;
      EXPECT_TRUE(seen.insert(id).second) << id << " stands twice";
      for (const auto& text : {cause.title, cause.explanation, cause.cure, cause.known_from}) {
        EXPECT_FALSE(text.empty()) << id;
        EXPECT_EQ(base::printable(text), text) << id;
      }
      EXPECT_TRUE(cause.explanation.ends_with('.')) << id;
      EXPECT_FALSE(cause.cure.ends_with('.')) << id;  // the printers end it
    }
  }
  EXPECT_EQ(find_cause("machine.nothing"), nullptr);
}

TEST(Causes, ExitCodeIsThatOfTheFirstFailure) {
  using model::Grade;
  EXPECT_EQ(exit_code_of({}), 0);
  const std::vector<model::Finding> warned{
      finding_of("machine.counters_locked", Grade::kWarn, "x")};
  EXPECT_EQ(exit_code_of(warned), 0);
  const std::vector<model::Finding> failed{well("y"),
                                           finding_of("machine.counters_locked", Grade::kFail, "x"),
                                           finding_of("machine.disk_full", Grade::kFail, "z")};
  EXPECT_EQ(exit_code_of(failed), 77);
}

// After a change: RANGESCOPE_UPDATE_GOLDEN=1 build/release/bin/doctor_test
TEST(Causes, ThePageIsTheCatalogue) {
  const auto file = std::filesystem::path(base::source_dir) / "docs" / "manual" / "causes.md";
  if (std::getenv("RANGESCOPE_UPDATE_GOLDEN")) {
    ASSERT_TRUE(base::write_file(file, causes_page()).has_value());
    return;
  }
  const auto page = base::read_file(file);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(*page, causes_page()) << "run with RANGESCOPE_UPDATE_GOLDEN=1";
}

}  // namespace causes_test
}  // namespace rangescope::doctor
