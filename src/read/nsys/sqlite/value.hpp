// One cell of a table row, wherever it was read from.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace rangescope::read::nsys_sqlite {

enum class Type : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

/// `bits` holds an integer or the bits of a double; text and blobs point into the source and die with the row.
struct Value {
  std::int64_t bits = 0;
  const char* bytes = nullptr;
  std::uint32_t size = 0;
  Type type = Type::kNull;

  [[nodiscard]] bool null() const { return type == Type::kNull; }
  [[nodiscard]] bool integer() const { return type == Type::kInteger; }
  /// The integer, or `otherwise` for anything else (a REAL is cut).
  [[nodiscard]] std::int64_t as_int(std::int64_t otherwise = 0) const {
    if (type == Type::kInteger) return bits;
    return otherwise;
  }
  [[nodiscard]] double as_double() const {
    if (type == Type::kReal) return std::bit_cast<double>(bits);
    return type == Type::kInteger ? static_cast<double>(bits) : 0.0;
  }
  [[nodiscard]] std::string_view text() const {
    return type == Type::kText || type == Type::kBlob ? std::string_view(bytes, size) : std::string_view{};
  }
};

}  // namespace rangescope::read::nsys_sqlite
