// The shipped configuration with assignments of a test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/source_dir.hpp"
#include "config/compose.hpp"

namespace rangescope::profile {

/// `assignments`: overrides ("run.keep=5"), by the command line or by the environment.
inline config::Config composed(const std::vector<std::string>& assignments,
                               config::Source source = config::Source::kOverride) {
  config::Inputs inputs;
  inputs.shipped = std::filesystem::path(base::source_dir) / "conf";
  for (const std::string& word : assignments) {
    auto parsed = config::parse_override(word, {.source = source, .name = word});
    EXPECT_TRUE(parsed.has_value()) << word;
    if (parsed)
      inputs.overrides.push_back(std::move(*parsed));
  }
  auto config = config::compose(inputs);
  EXPECT_TRUE(config.has_value()) << (config ? "" : base::to_string(config.error()));
  return config ? std::move(*config) : config::Config{};
}

}  // namespace rangescope::profile
