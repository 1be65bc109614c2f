// ELF files of the profiled program, which may hold anything: opened without waiting, and believed
// only where what they claim fits into memory.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rangescope::sample::cpu {

/// Read, not mapped: who shortens the file must not end us. Null for what is no ELF file, and for
/// one whose sections, as libdw reads or unpacks them, take more than kMostSections. `bytes`: what
/// they take.
inline constexpr std::uint64_t kMostSections = 512ull << 20;
[[nodiscard]] Elf* read_elf(int fd, std::uint64_t& bytes);

// What unwinding tables cover: functions, and parts of them that a compiler put elsewhere, also of
// files without symbols.

struct Code {
  GElf_Addr start = 0, end = 0;
};

/// Sections of code, as section headers count; empty where the file has none.
[[nodiscard]] std::vector<Code> code_of(Elf* elf);

/// By begin, as section headers count. Of .eh_frame, in which compilers write begin and length as
/// four bytes each, the begin counted from its place; what is written otherwise is no place of
/// code. O(entries log).
[[nodiscard]] std::vector<Code> covered_of(Elf* elf);

/// The one that holds an address; null where none does.
[[nodiscard]] const Code* find_code(const std::vector<Code>& by_begin, GElf_Addr address);

}  // namespace rangescope::sample::cpu
