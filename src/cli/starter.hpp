// Which ranges of a program that was seen are worth measuring: what `config init` writes to
// ranges.include.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/program/facts.hpp"

namespace rangescope::cli {

/// An item of ranges.include, with what was seen of it.
struct StarterRange {
  std::string expression;
  std::uint64_t occurrences = 0, kernels = 0;  ///< occurrences: closed ones
  std::int64_t total_ns = 0;
  std::uint64_t work = 0;  ///< launches, or in a program without any ns: they are sorted by it
};

/// Outermost ranges with GPU work (any, in a program without), but not a single one around
/// everything: then those inside it. The most work first, ten at most. Four or more whose names
/// differ in numbers only are one pattern.
[[nodiscard]] std::vector<StarterRange> ranges_worth_measuring(const doctor::ProgramFacts& facts);

}  // namespace rangescope::cli
