// Reports of Nsight Compute, plain or zstd.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read/ncu/report/file.hpp"
#include "read/ncu/report/reader.hpp"
#include "read/ncu/report/unpack.hpp"
#include "share.hpp"

namespace ncu = rangescope::read::ncu_report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ncu::Unpacked unpacked;
  if (ncu::is_zstd(bytes)) {
    auto whole = ncu::unpack(bytes, "fuzz", std::size_t{16} << 20);
    if (!whole)
      return ::fuzz::count(false);
    unpacked = std::move(*whole);
    bytes = unpacked.bytes;
  }
  const auto file = ncu::File::parse(bytes, "fuzz");
  if (!file) {
    if (file.error().what.empty() || file.error().where.empty())
      __builtin_trap();
    return ::fuzz::count(false);
  }
  const auto session = ncu::to_session(*file);
  if (!session && session.error().what.empty())
    __builtin_trap();
  return ::fuzz::count(true);
}
