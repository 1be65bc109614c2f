// The catalog of cures and the manual's page of it.
#include "analyze/cures/catalog.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"

namespace rangescope::analyze::cures {
namespace catalog_test {

TEST(CureCatalog, TheManualHasIt) {
  const auto page =
      base::read_file(std::filesystem::path(base::source_dir) / "docs/manual/cures.md");
  ASSERT_TRUE(page);
  EXPECT_EQ(*page, cures_page());
}

}  // namespace catalog_test
}  // namespace rangescope::analyze::cures
