// Protobuf wire format, leniently: known fields of the expected type are taken, everything else is skipped and counted.
//
// Over protozero's reader. Its exceptions (a varint or length that runs over the end of the message) pass through
// for_each_field and are caught by parse_message, once per entry.
#pragma once

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <string_view>

#include "base/result.hpp"
#include "read/ncu/report/file.hpp"

namespace rangescope::read::ncu_report::proto {

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

/// Messages of messages are never followed deeper than the readers go by name, so no input can exhaust the stack.
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

/// Calls `take(field)` for every field of `message`; take answers false for a field that it does not know (and did not
/// read), which is then skipped and counted in `unknown`.
template <class Take>
void for_each_field(std::string_view message, std::uint64_t& unknown, Take&& take) {
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    Field field{reader};
    if (take(field)) continue;
    ++unknown;
    reader.skip();
  }
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

/// A metric's value: one of 1 string, 2 float, 3 double, 4 uint32, 5 uint64.
[[nodiscard]] Value read_value(std::string_view message, std::uint64_t& unknown);

}  // namespace rangescope::read::ncu_report::proto
