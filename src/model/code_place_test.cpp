#include "model/code_place.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rangescope::model {
namespace code_place_test {

TEST(CodePlace, ANameHasNoArguments) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"insertion_sort(std::vector<int, std::allocator<int> >&, unsigned long)", "insertion_sort"},
      {"Cache::find(int) const", "Cache::find"},
      {"apply(int (*)(int), int)", "apply"},
      {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
      {"(anonymous namespace)::fill(float*)", "(anonymous namespace)::fill"},
      {"fill(float*) [libblas.so.3]", "fill [libblas.so.3]"},
      // Not arguments, or none.
      {"(anonymous namespace)::fill", "(anonymous namespace)::fill"},
      {"Op::operator()", "Op::operator()"},
      {"Server.handle.<locals>.<lambda>", "Server.handle.<locals>.<lambda>"},
      {"main.(*Server).Handle", "main.(*Server).Handle"},
      {"unbalanced)", "unbalanced)"},
      {"", ""}};
  for (const auto& [name, expected] : names)
    EXPECT_EQ(name_without_arguments(name), expected);
}

TEST(CodePlace, ATextHasTheFileWithoutItsFolders) {
  EXPECT_EQ(place_text({"sort(int*)", "/home/me/app.cpp", 9}), "sort (app.cpp:9)");
  EXPECT_EQ(place_text({"handle", "/srv/app/server.py", 0}), "handle (server.py)");
  EXPECT_EQ(place_text({"read [libc.so.6]", "", 0}), "read [libc.so.6]");
}

}  // namespace code_place_test
}  // namespace rangescope::model
