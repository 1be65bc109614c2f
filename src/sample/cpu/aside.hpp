// Names of a file's addresses, found in a child of ours: the file is the profiled program's and may hold anything, and
// what libdw does with it is bounded by nothing but the child's limits of memory and time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sample/cpu/symbols.hpp"

namespace rangescope::sample::cpu {

struct AsideLimits {
  std::uint64_t bytes = 1ull << 30;  ///< of memory, beside the mapped file
  int cpu_s = 60, silent_s = 30;     ///< in all, and without an answer
};

/// Those of `addresses` (sorted) that have a name. One that the child comes to its limits with has none, and a new
/// child goes on behind it; after some of them the rest has no names either. `unnamed`: so many were given up.
[[nodiscard]] std::vector<Named> names_aside(int file, const std::string& name,
                                             std::span<const std::uint64_t> addresses, std::size_t& unnamed,
                                             const AsideLimits& limits = {});

}  // namespace rangescope::sample::cpu
