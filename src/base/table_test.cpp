#include "base/table.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace rangescope::base {
namespace table_test {

Table sample() {
  Table table({{"range", false, true, 0}, {"count", true, false, 2}, {"wall", true, false, 0}});
  table.add({{"decode"}, {"64"}, {"1.5 s"}});
  table.add({{"  a layer with a long name"}, {"1,024"}, {"900.0 ms"}});
  return table;
}

TEST(Text, WhatTerminalsObeyIsShownInHex) {
  EXPECT_EQ(printable("a\x1b[31m \xC2\x9B \xE2\x80\xAE b\n\xFF \xC3\xA9"),
            "a\\x1b[31m \\xc2\\x9b \\xe2\\x80\\xae b\\n\\xff \xC3\xA9");
}

TEST(Table, AlignsNumbersRight) {
  EXPECT_EQ(sample().render(0, false),
            "range                       count      wall\n"
            "decode                         64     1.5 s\n"
            "  a layer with a long name  1,024  900.0 ms\n");
}

TEST(Table, TheTreeShrinks) {
  EXPECT_EQ(sample().render(35, false),
            "range               count      wall\n"
            "decode                 64     1.5 s\n"
            "  a layer…ong name  1,024  900.0 ms\n");
}

TEST(Table, TheLeastImportantColumnsGiveWay) {
  std::vector<std::string> dropped;
  EXPECT_EQ(sample().render(26, false, &dropped),
            "range                 wall\n"
            "decode               1.5 s\n"
            "  a laye…ng name  900.0 ms\n");
  EXPECT_EQ(dropped, std::vector<std::string>{"count"});
}

TEST(Table, WideCharactersCountTwo) {
  Table table({{"range", false, true, 0}, {"n"}});
  table.add({{"层"}, {"1"}});
  table.add({{"ab"}, {"2"}});
  EXPECT_EQ(table.render(0, false),
            "range  n\n"
            "层     1\n"
            "ab     2\n");
}

TEST(Table, ColourIsNotCounted) {
  Table table({{"a"}, {"b"}});
  table.add({{"1", Tone::kDim}, {"22"}});
  EXPECT_EQ(table.render(0, true), "\x1b[1ma\x1b[0m   \x1b[1mb\x1b[0m\n\x1b[2m1\x1b[0m  22\n");
}

}  // namespace table_test
}  // namespace rangescope::base
