// CSV of Nsight Compute between whatever a program printed, read with a learned and with a given
// number format.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read/ncu/csv/reader.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bool any = false;
  for (const char* format : {"", "de"}) {
    rangescope::read::Options options;
    options.number_format = format;
    const auto session = rangescope::read::ncu_csv::read_text(text, "fuzz", options);
    any |= session.has_value();
    if (!session && (session.error().what.empty() || session.error().where.empty()))
      __builtin_trap();
  }
  return ::fuzz::count(any);
}
