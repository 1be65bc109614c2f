// ELF files of the profiled program, which may hold anything: opened without waiting, and believed only where what they
// claim fits into memory.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <string>

namespace rangescope::sample::cpu {

/// A descriptor of a regular file; -1 for anything else.
[[nodiscard]] int open_file(const std::string& path);

/// Read, not mapped: who shortens the file must not end us. Null for what is no ELF file, and for one whose sections,
/// as libdw reads or unpacks them, take more than kMostSections. `bytes`: what they take.
inline constexpr std::uint64_t kMostSections = 512ull << 20;
[[nodiscard]] Elf* read_elf(int fd, std::uint64_t& bytes);

}  // namespace rangescope::sample::cpu
