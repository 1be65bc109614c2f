#include "base/demangle.hpp"

#include <gtest/gtest.h>

namespace rangescope::base {
namespace demangle_test {

/// "S_", "S0_", ... "SZ_", "S10_": the n-th type that a name has had.
std::string earlier(int n) {
  std::string digits;
  for (int left = n - 1; n > 0; left /= 36) {
    digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[left % 36]);
    if (left < 36)
      break;
  }
  return "S" + digits + "_";
}

TEST(Demangle, NamesOfKernels) {
  const std::pair<const char*, const char*> names[] = {
      {"_Z5scaleIfEvPT_i", "void scale<float>(float*, int)"},
      {"saxpy", "saxpy"},
      {"f", "f"},
      {"_Zbroken", "_Zbroken"},
      {"_RNvCs4fqI2P2rA04_5split3red", "split::red"},
      {"_Rbroken", "_Rbroken"},
      {"_ZN5split4blue17h1a2b3c4d5e6f7a8bE", "split::blue"},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
       "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
       "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
       "std::array<char*, 1ul> "
       ">(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"}};
  for (const auto& [mangled, plain] : names)
    EXPECT_EQ(demangle(mangled), plain);
}

TEST(Demangle, ManyReferencesToTheSameAreNoHarm) {
  std::string name = "_Z1f1A", plain = "f(A";
  for (int i = 0; i < 60; ++i)
    name += "S_", plain += ", A";
  EXPECT_EQ(demangle(name), plain + ")");
}

/// Each type takes the one before twice: 2^43 characters.
TEST(Demangle, WhatDoublesItselfStaysAsItIs) {
  std::string name = "_Z1fPi";
  for (int level = 0; level < 43; ++level) {
    const std::string twice = earlier(2 * level);
    name += "PFv" + twice + twice + "E";
  }
  EXPECT_EQ(demangle(name), name);
}

/// Arguments behind a conversion are parsed once more a level, and nothing is printed.
TEST(Demangle, WhatIsParsedAgainAndAgainStaysAsItIs) {
  std::string name = "_Zcv";
  for (int level = 0; level < 60; ++level)
    name += "T_I";
  name += std::string(60, 'E') + "v";
  for (int again = 0; again < 4; ++again)
    EXPECT_EQ(demangle(name), name);
}

}  // namespace demangle_test
}  // namespace rangescope::base
