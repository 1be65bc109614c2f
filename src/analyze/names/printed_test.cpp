#include "analyze/names/printed.hpp"

#include <gtest/gtest.h>

namespace rangescope::analyze {
namespace printed_test {

using Path = std::vector<std::string_view>;

const Path kLayer = {"decode step",
                     "Model",
                     "model (Decoder)",
                     "model.layers.3 (Layer)",
                     "model.layers.3.mlp (Mlp)"};

bool names(std::string_view written, const Path& path, std::string_view domain = "") {
  return PrintedPath(written).names(domain, path);
}

TEST(PrintedPath, ARowOfSiblings) {
  EXPECT_TRUE(names("step_# x32", {"step_17"}));
  EXPECT_TRUE(names("step_#", {"step_17"}));
  EXPECT_FALSE(names("step_# x32", {"step_17", "layer"}));
  EXPECT_FALSE(names("step_# x32", {"stop_17"}));
}

TEST(PrintedPath, AModuleBelowAnotherOne) {
  EXPECT_TRUE(names("mlp (Mlp) x32", kLayer));
  EXPECT_TRUE(names("mlp", kLayer));
  EXPECT_TRUE(names("model.layers.#.mlp (Mlp) x32", kLayer));
  EXPECT_FALSE(names("layers.#.mlp (Mlp)", kLayer));  // no table prints that
}

TEST(PrintedPath, AChain) {
  EXPECT_TRUE(names("Model > model > layers.# > mlp (Mlp) x32", kLayer));
  EXPECT_TRUE(names("decode step > Model > model > layers.# > mlp (Mlp)", kLayer));
  EXPECT_FALSE(names("decode step > model > layers.# > mlp (Mlp)", kLayer));
  EXPECT_FALSE(names("Model > model > layers.# x32", kLayer));  // that is the layer
}

TEST(PrintedPath, ADomain) {
  EXPECT_TRUE(names("LLM@step > load", {"step", "load"}, "LLM"));
  EXPECT_TRUE(names("step > load", {"step", "load"}, "LLM"));
  EXPECT_FALSE(names("other@step > load", {"step", "load"}, "LLM"));
}

TEST(PrintedPath, ANameThatEndsLikeACount) {
  EXPECT_TRUE(names("grid x16", {"grid"}));  // nothing else has the name that was written
  EXPECT_FALSE(names("grid xy", {"grid"}));
}

}  // namespace printed_test
}  // namespace rangescope::analyze
