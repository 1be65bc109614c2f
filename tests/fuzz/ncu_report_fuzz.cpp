// Reports of Nsight Compute, plain or zstd: the session, and every page that `rangescope ncu` prints.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ncu_pages/pages.hpp"
#include "read/ncu/report/file.hpp"
#include "read/ncu/report/reader.hpp"
#include "read/ncu/report/unpack.hpp"
#include "share.hpp"

namespace ncu = rangescope::ncu_pages;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ncu::Unpacked unpacked;
  if (ncu::is_zstd(bytes)) {
    auto whole = ncu::unpack(bytes, "fuzz", std::size_t{16} << 20);
    if (!whole) return ::fuzz::count(false);
    unpacked = std::move(*whole);
    bytes = unpacked.bytes;
  }
  const auto file = ncu::File::parse(bytes, "fuzz");
  if (!file) {
    if (file.error().what.empty() || file.error().where.empty()) __builtin_trap();
    return ::fuzz::count(false);
  }
  const auto session = ncu::to_session(*file);
  if (!session && session.error().what.empty()) __builtin_trap();
  for (const ncu::Page page : {ncu::Page::kDetails, ncu::Page::kRaw, ncu::Page::kSource, ncu::Page::kSession}) {
    for (const bool csv : {false, true}) {
      ncu::PageOptions options;
      options.page = page;
      options.csv = csv;
      options.part = ncu::Part::kAll;
      options.instances = csv ? ncu::Instances::kDetails : ncu::Instances::kValues;
      std::vector<rangescope::model::Loss> losses;
      std::size_t printed = 0;
      const auto done = ncu::print_pages(
          *file, options, [&](std::string_view text) { printed += text.size(); }, losses);
      if (!done && done.error().what.empty()) __builtin_trap();
    }
  }
  return ::fuzz::count(true);
}
