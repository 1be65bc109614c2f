#include "read/nsys/sqlite/ids.hpp"

namespace rangescope::read::nsys_sqlite {

void StringIds::read(const Source& source, Scanned& scanned) {
  const Table* table = source.find("StringIds");
  if (table == nullptr || !table->has("id") || !table->has("value"))
    return;
  scanned = source.scan(
      *table,
      "id value",
      [&](std::size_t) {
        bytes_.clear();
        places_.clear();
      },
      [&](const Value* row) {
        if (!row[0].integer())
          return;
        const std::string_view text = row[1].text();
        places_.emplace(row[0].bits, std::pair(bytes_.size(), text.size()));
        bytes_ += text;
      });
}

std::optional<std::string_view> StringIds::find(std::int64_t id) const {
  const auto found = places_.find(id);
  if (found == places_.end())
    return std::nullopt;
  return std::string_view(bytes_).substr(found->second.first, found->second.second);
}

}  // namespace rangescope::read::nsys_sqlite
