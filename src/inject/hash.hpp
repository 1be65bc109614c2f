// FNV-1a for the tables inside the profiled process, where nothing of base is linked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::inject {

constexpr std::uint64_t kFnvSeed = 14695981039346656037ull;

[[nodiscard]] inline std::uint64_t fnv1a(const char* text,
                                         std::size_t bytes,
                                         std::uint64_t seed = kFnvSeed) {
  for (std::size_t i = 0; i < bytes; ++i)
    seed = (seed ^ static_cast<unsigned char>(text[i])) * 1099511628211ull;
  return seed;
}

}  // namespace rangescope::inject
