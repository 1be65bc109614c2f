// Identifiers of an export.
//
// globalTid and globalPid are 64 bits: tid in bits 0 to 23 (0 in a globalPid), pid in bits 24 to
// 47, host and virtual machine above. Correlation ids are unique within a process only, so every
// link carries the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {

// The table StringIds: text by number. Held in one block; ids may be sparse.

class StringIds {
 public:
  /// Reads the table; an export without it has no strings. Damage is reported in `scanned`.
  void read(const Source& source, Scanned& scanned);
  /// The text of `id`, or nothing when the table has no such row.
  [[nodiscard]] std::optional<std::string_view> find(std::int64_t id) const;

 private:
  std::string bytes_;
  std::unordered_map<std::int64_t, std::pair<std::size_t, std::size_t>> places_;
};

[[nodiscard]] constexpr std::uint64_t process_of(std::int64_t global_id) {
  return static_cast<std::uint64_t>(global_id) >> 24;
}
[[nodiscard]] constexpr std::uint32_t pid_of(std::uint64_t process) {
  return static_cast<std::uint32_t>(process & 0xffffff);
}
[[nodiscard]] constexpr std::uint32_t tid_of(std::int64_t global_id) {
  return static_cast<std::uint32_t>(global_id & 0xffffff);
}

/// The process of a row that names none: resolved when the export has only one, else kept apart.
inline constexpr std::uint64_t kUnknownProcess = ~std::uint64_t{0};

/// A node of a CUDA graph of a process.
struct NodeKey {
  std::uint64_t process = 0;
  std::uint64_t id = 0;
};

/// A stream of a context of a device of a process, before it has an index in the session.
struct StreamKey {
  std::uint64_t process = 0;
  std::uint32_t device = 0, context = 0, stream = 0, unused = 0;
};

/// The three names of a kernel, as ids of StringIds.
struct NameKey {
  std::int64_t demangled = -1, short_name = -1, mangled = -1;
};

}  // namespace rangescope::read::nsys_sqlite
