// Tables of nsys stats, with whatever a program may print between them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read/nsys_csv/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto session = rangescope::read::nsys_csv::read_text(text, "fuzz");
  if (!session && session.error().what.empty()) __builtin_trap();
  return 0;
}
