// Traces of PyTorch's profiler: a session whose links lie within it, or an error.
#include <cstddef>
#include <cstdint>

#include "links.hpp"
#include "read/kineto/reader.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  const auto read = read::kineto::read_text({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read) {
    if (read.error().what.empty())
      __builtin_trap();
    return ::fuzz::count(false);
  }
  rangescope::fuzz::check_links(*read);
  return ::fuzz::count(true);
}
