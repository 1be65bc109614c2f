// Tables of nsys stats, with whatever a program may print between them: a session whose links lie
// within it, or an error.
#include <cstddef>
#include <cstdint>

#include "links.hpp"
#include "read/nsys/csv/reader.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  const read::nsys_csv::Text one{{reinterpret_cast<const char*>(data), size}, "fuzz"};
  const auto read = read::nsys_csv::read_texts(std::span(&one, 1));
  if (!read) {
    if (read.error().what.empty())
      __builtin_trap();
    return ::fuzz::count(false);
  }
  rangescope::fuzz::check_links(*read);
  return ::fuzz::count(true);
}
