#include "base/removed.hpp"

#include <gtest/gtest.h>

namespace rangescope::base {
namespace removed_test {

TEST(Removed, EverySpellingNamesWhatToWriteInstead) {
  EXPECT_EQ(removal_hint("-f otlp-spans"),
            "-f otlp-spans was removed: write -f perfetto for a timeline, -f jsonl for numbers");
  const std::string option = removal_hint("--overhead");
  EXPECT_TRUE(option.starts_with("--overhead was removed: write --after 30s --for 10s ")) << option;
  const std::string key = removal_hint("pipeline.native.overhead");
  EXPECT_TRUE(key.starts_with("pipeline.native.overhead was removed: write --after ")) << key;
}

TEST(Removed, OfAnythingElseThereIsNothingToSay) {
  for (const char* written :
       {"", "-f", "-f json", "overhead", "--after", "--overhead,pipeline.native.overhead"})
    EXPECT_EQ(removal_hint(written), "") << written;
}

}  // namespace removed_test
}  // namespace rangescope::base
