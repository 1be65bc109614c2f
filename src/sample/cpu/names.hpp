// Names of a module's addresses: from its file, kept by build id; from the map that a JIT compiler
// writes for perf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sample/cpu/space.hpp"
#include "sample/cpu/symbols.hpp"

namespace rangescope::sample::cpu {

/// `addresses`: sorted. `cache`: a folder, made where it is not there; "" for none. `unnamed`: how
/// many were given up, since naming them took too much memory or time.
[[nodiscard]] std::vector<Named> names_of_module(const Module& module,
                                                 std::span<const std::uint64_t> addresses,
                                                 const std::filesystem::path& cache,
                                                 std::size_t& unnamed);

/// Lines "START SIZE NAME" in hex of /tmp/perf-PID.map, of which each compiler may write millions;
/// what is newer replaces what is older. Of a file of the current user or root only, as perf
/// does: everybody can make one of that name. Memory: of `addresses` (sorted), and one line; at
/// most the last 256 MiB are read.
[[nodiscard]] std::vector<Named> names_in_perf_map(const std::filesystem::path& file,
                                                   std::span<const std::uint64_t> addresses);

/// Lines "START TYPE NAME" in hex of /proc/kallsyms, in any order. Memory: of `addresses` (sorted).
[[nodiscard]] std::vector<Named> names_in_kallsyms(const std::filesystem::path& file,
                                                   std::span<const std::uint64_t> addresses);
/// Whether this user sees addresses there (kernel.kptr_restrict): else they are all 0.
[[nodiscard]] bool kernel_has_names();

// Names of a file's addresses, found in a child of ours: the file is the profiled program's and may
// hold anything, and what libdw does with it is bounded by nothing but the child's limits of memory
// and time.

struct AsideLimits {
  std::uint64_t bytes = 1ull << 30;  ///< of memory, in addition to the mapped file
  int cpu_s = 60, silent_s = 30;     ///< in all, and without an answer
};

/// Those of `addresses` (sorted) that have a name. An address at which the child
/// reaches its limits has none, and a new child goes on behind it; after a few children the rest
/// has no names either. `unnamed`: how many were given up.
[[nodiscard]] std::vector<Named> names_aside(int file,
                                             const std::string& name,
                                             std::span<const std::uint64_t> addresses,
                                             std::size_t& unnamed,
                                             const AsideLimits& limits = {});

}  // namespace rangescope::sample::cpu
