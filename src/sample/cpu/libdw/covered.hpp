// What unwinding tables cover: functions, and parts of them that a compiler put elsewhere, also of files without
// symbols.
#pragma once

#include <gelf.h>

#include <vector>

namespace rangescope::sample::cpu {

struct Code {
  GElf_Addr start = 0, end = 0;
};

/// Sections of code, as section headers count; empty where the file has none.
[[nodiscard]] std::vector<Code> code_of(Elf* elf);

/// By begin, as section headers count. Of .eh_frame, in which compilers write begin and length as four bytes each, the
/// begin counted from its place; what is written otherwise is no place of code. O(entries log).
[[nodiscard]] std::vector<Code> covered_of(Elf* elf);

/// The one that holds an address; null where none does.
[[nodiscard]] const Code* find_code(const std::vector<Code>& by_begin, GElf_Addr address);

}  // namespace rangescope::sample::cpu
