// Names of addresses in a file, after the program has ended: by its symbol tables, and with the
// functions that were inlined there where it has debug information (its own, or a package's below
// /usr/lib/debug, by build id).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rangescope::sample::cpu {

struct Function {
  std::string name;  ///< demangled; of a function without symbol "libx.so+0x1a20", where it begins
  std::string file = {};  ///< where it is declared; "" where unknown
  std::uint32_t line = 0;
  /// Of `file`: where the address is, or where the next function is called; 0: unknown.
  std::uint32_t line_of_address = 0;
};
struct Named {
  std::uint64_t address = 0;
  std::vector<Function> functions;  ///< the outermost first, inlined ones behind
};

/// Of an open file, in turn for each of `addresses` (as program headers count, sorted); without
/// functions where it has no name, or the file cannot be read. `name`: how functions without a
/// symbol are called after it. What a file holds may take any time and memory: see names_aside().
void name_each(int file,
               const std::string& name,
               std::span<const std::uint64_t> addresses,
               const std::function<void(const Named&)>& take);

}  // namespace rangescope::sample::cpu
