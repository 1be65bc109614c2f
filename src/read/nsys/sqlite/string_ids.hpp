// The table StringIds: text by number. Held in one block; ids may be sparse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {

class StringIds {
 public:
  /// Reads the table; an export without it has no strings. Damage is told in `scanned`.
  void read(const Source& source, Scanned& scanned);
  /// The text of `id`, or nothing when the table has no such row.
  [[nodiscard]] std::optional<std::string_view> find(std::int64_t id) const;

 private:
  std::string bytes_;
  std::unordered_map<std::int64_t, std::pair<std::size_t, std::size_t>> places_;
};

}  // namespace rangescope::read::nsys_sqlite
