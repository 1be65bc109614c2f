#include "inject/counters/demangle.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rangescope::inject::counters {
namespace demangle_test {

std::string plain(const std::string& mangled) {
  char room[4096];
  return std::string(demangle(mangled.c_str(), room, sizeof room));
}

TEST(InjectDemangle, NamesOfKernels) {
  EXPECT_EQ(plain("_Z5scaleIfEvPT_i"), "void scale<float>(float*, int)");
  EXPECT_EQ(plain("_ZN2cv4cuda4warpIfEENS_4SizeEPT_"), "cv::Size cv::cuda::warp<float>(float*)");
  EXPECT_EQ(plain("f"), "f");
  EXPECT_EQ(plain("_Zbroken"), "_Zbroken");
}

/// Each type takes the one before twice: 2^43 characters.
TEST(InjectDemangle, WhatDoublesItselfStaysAsItIs) {
  std::string name = "_Z1fPi", before = "S_";
  for (int level = 0; level < 43; ++level) {
    name += "PFv" + before + before + "E";
    const int next = 2 * level + 1;
    before = next < 36 ? std::string("S") + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[next] + "_"
                       : std::string("S1") +
                             "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(next - 36) % 36] + "_";
  }
  EXPECT_EQ(plain(name), name);
}

/// Arguments behind a conversion are parsed once more a level, and nothing is printed.
TEST(InjectDemangle, WhatIsParsedAgainAndAgainStaysAsItIs) {
  for (const std::string parameter : {"T_", "T0_", "PT_"}) {
    std::string name = "_Zcv";
    for (int level = 0; level < 60; ++level)
      name += parameter + "I";
    name += std::string(60, 'E') + "v";
    EXPECT_EQ(plain(name), name);
  }
}

}  // namespace demangle_test
}  // namespace rangescope::inject::counters
