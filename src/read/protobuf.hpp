// Protobuf wire format, leniently: known fields of the expected type are taken, everything else is
// skipped and counted.
//
// Over protozero's reader. Its exceptions (a varint or length that runs over the end of the
// message) pass through for_each_field and are caught by parse_message, once per entry.
#pragma once

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rangescope::read::proto {

using Type = protozero::pbf_wire_type;

/// Field number and wire type as one number, for switches.
constexpr std::uint32_t varint(std::uint32_t number) {
  return protozero::tag_and_type(number, Type::varint);
}
constexpr std::uint32_t bytes(std::uint32_t number) {
  return protozero::tag_and_type(number, Type::length_delimited);
}
constexpr std::uint32_t fixed32(std::uint32_t number) {
  return protozero::tag_and_type(number, Type::fixed32);
}
constexpr std::uint32_t fixed64(std::uint32_t number) {
  return protozero::tag_and_type(number, Type::fixed64);
}

/// Messages of messages are never followed deeper than the readers go by name, so no input can
/// exhaust the stack.
struct Field {
  protozero::pbf_reader& reader;
  [[nodiscard]] std::uint32_t key() const { return reader.tag_and_type(); }
  [[nodiscard]] std::string_view text() {
    const auto view = reader.get_view();
    return {view.data(), view.size()};
  }
  [[nodiscard]] std::uint64_t number() { return reader.get_uint64(); }
  [[nodiscard]] std::uint32_t number32() { return static_cast<std::uint32_t>(reader.get_uint64()); }
};

/// Calls `take(field)` for every field of `message`; take answers false for a field that it does
/// not know (and did not read), which is then skipped and counted in `unknown`.
template <class Take>
void for_each_field(std::string_view message, std::uint64_t& unknown, Take&& take) {
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    Field field{reader};
    if (take(field))
      continue;
    ++unknown;
    reader.skip();
  }
}

/// What becomes of one field, for read(): `number(1, id)`, `text(2, name)`, `each(3,
/// [&](std::string_view message)
/// {})`.
template <class T>
auto number(std::uint32_t field, T& out) {
  return [field, &out](Field& at) {
    if (at.key() != varint(field))
      return false;
    out = static_cast<T>(at.number());
    return true;
  };
}
template <class T>
auto text(std::uint32_t field, T& out) {
  return [field, &out](Field& at) {
    if (at.key() != bytes(field))
      return false;
    out = at.text();
    return true;
  };
}
template <class Take>
auto each(std::uint32_t field, Take take) {
  return [field, take](Field& at) {
    if (at.key() != bytes(field))
      return false;
    take(at.text());
    return true;
  };
}
/// Known, and of no use here. `keys` live as long as the call of read().
inline auto skip(std::initializer_list<std::uint32_t> keys) {
  return [keys](Field& at) {
    for (const std::uint32_t key : keys)
      if (at.key() == key)
        return at.reader.skip(), true;
    return false;
  };
}
template <class... Fields>
void read(std::string_view message, std::uint64_t& unknown, const Fields&... fields) {
  for_each_field(message, unknown, [&](Field& at) { return (fields(at) || ...); });
}

/// Runs `body` and turns a damaged message into an error at `where`.
template <class Body>
base::Result<void> parse_message(const std::string& where, Body&& body) {
  try {
    body();
    return {};
  } catch (const protozero::exception& e) {
    return base::fail(base::Code::kBadData, std::string("damaged message: ") + e.what(), where);
  }
}

}  // namespace rangescope::read::proto
