#include "wire/launched.hpp"

#include <gtest/gtest.h>

namespace rangescope::read::launched_test {

using wire::launched::Launched;

TEST(Launched, WhatIsWrittenIsRead) {
  for (const std::int64_t end : {std::int64_t{0}, std::int64_t{500}}) {
    Launched found;
    ASSERT_TRUE(wire::launched::read(wire::launched::text_of({1'700'000'000'000'000'000, 300, end}),
                                     found));
    EXPECT_EQ(found.start_unix_ns, 1'700'000'000'000'000'000);
    EXPECT_EQ(found.start_ns, 300);
    EXPECT_EQ(found.end_ns, end);
  }
}

TEST(Launched, DamageIsNoBegin) {
  const std::string head = wire::launched::kHead;
  for (const std::string& text : {std::string(),
                                  head,
                                  head + "start_unix_ns 5\n",
                                  std::string("start_unix_ns 5\nstart_ns 6\n"),
                                  head + "start_unix_ns 5\nstart_ns 6\nend_ns 5\n",
                                  head + "start_unix_ns 5\nstart_ns -6\n",
                                  head + "start_unix_ns 5\nstart_ns 9223372036854775807\n"}) {
    Launched found;
    EXPECT_FALSE(wire::launched::read(text, found)) << text;
  }
}

}  // namespace rangescope::read::launched_test
