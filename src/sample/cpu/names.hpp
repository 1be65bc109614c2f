// Names of a module's addresses: from its file, kept by build id; from the map that a JIT compiler writes for perf.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "sample/cpu/space.hpp"
#include "sample/cpu/symbols.hpp"

namespace rangescope::sample::cpu {

/// `addresses`: sorted. `cache`: a folder, made where it is not there; "" for none.
[[nodiscard]] std::vector<Named> names_of_module(const Module& module, std::span<const std::uint64_t> addresses,
                                                 const std::filesystem::path& cache);

/// Lines "START SIZE NAME" in hex of /tmp/perf-PID.map; what is newer stands for what is older.
[[nodiscard]] std::vector<Named> names_in_perf_map(std::string_view text, std::span<const std::uint64_t> addresses);

}  // namespace rangescope::sample::cpu
