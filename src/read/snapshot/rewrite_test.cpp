#include "read/snapshot/rewrite.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rangescope::read::snapshot {
namespace rewrite_test {

using namespace std::string_literals;

/// "key" becomes `to`; what is refused is its reason.
std::string with_key_as(const std::string& to, const std::string& pickle) {
  const auto replace = [&](std::string_view text) {
    return text == "key" ? std::optional(to) : std::nullopt;
  };
  const auto done = with_texts(pickle, "file", replace);
  if (!done)
    return done.error().what + " | " + done.error().where;
  return done->value_or("(unchanged)");
}

/// As Python 3.11 writes them: pickle.dumps(value, protocol).
TEST(PickleTexts, LengthsOfTextsAndFramesFollow) {
  EXPECT_EQ(with_key_as("longer", "\x80\x04\x95\x07\0\0\0\0\0\0\0\x8c\x03key\x94."s),
            "\x80\x04\x95\x0a\0\0\0\0\0\0\0\x8c\x06longer\x94."s);
  EXPECT_EQ(with_key_as("", "\x80\x04\x95\x07\0\0\0\0\0\0\0\x8c\x03key\x94."s),
            "\x80\x04\x95\x04\0\0\0\0\0\0\0\x8c\0\x94."s);
  EXPECT_EQ(with_key_as("k", "\x80\x02]q\0(X\x03\0\0\0keyq\x01K\x05X\x01\0\0\0aq\x02e."s),
            "\x80\x02]q\0(X\x01\0\0\0kq\x01K\x05X\x01\0\0\0aq\x02e."s);
}

TEST(PickleTexts, ATextThatOutgrowsItsOpcodeGetsALongerOne) {
  const std::string text(300, 'x');
  EXPECT_EQ(with_key_as(text, "\x80\x04\x95\x07\0\0\0\0\0\0\0\x8c\x03key\x94."s),
            "\x80\x04\x95\x33\x01\0\0\0\0\0\0X\x2c\x01\0\0"s + text + "\x94."s);
}

TEST(PickleTexts, OnlyTheFrameAroundATextChanges) {
  const std::string other =
      "\x95\x04\0\0\0\0\0\0\0\x8c\x01"
      "a\x94"s;
  EXPECT_EQ(with_key_as(
                "keys",
                "\x80\x04"s + other + "\x95\x06\0\0\0\0\0\0\0\x8c\x03key\x94"s + other + "\x87."s),
            "\x80\x04"s + other + "\x95\x07\0\0\0\0\0\0\0\x8c\x04keys\x94"s + other + "\x87."s);
}

TEST(PickleTexts, WhatHasNoSuchTextIsNotWrittenAgain) {
  EXPECT_EQ(with_key_as("x", "\x80\x04\x95\x08\0\0\0\0\0\0\0\x8c\x04keys\x94."s), "(unchanged)");
  EXPECT_EQ(with_key_as("x", "\x80\x04\x95\x07\0\0\0\0\0\0\0C\x03key\x94."s), "(unchanged)")
      << "bytes are no text";
}

TEST(PickleTexts, WhatIsNoDataIsRefusedWithItsPlace) {
  EXPECT_EQ(with_key_as("x", "\x80\x04\x8c\x03keycos\nsystem\n."s),
            "the pickle has an opcode that is no data | file: byte 7");
  EXPECT_EQ(with_key_as("x", "\x80\x04\x8c\x09key"s), "the pickle breaks off | file: byte 2");
  EXPECT_EQ(with_key_as("x", "\x80\x04\x8c\x03key"s),
            "the pickle ends before its STOP | file: byte 7");
}

}  // namespace rewrite_test
}  // namespace rangescope::read::snapshot
