// Rank digests: what is read merges with another and with itself, makes a report, and is written
// and read again as the same. The payload is fuzzed as it is (`decode` checks zstd's sum first):
// the input is compressed here.
#include <zstd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "analyze/tally/file.hpp"
#include "analyze/tally/report.hpp"
#include "share.hpp"

namespace {

using namespace rangescope;

std::string packed(std::string_view payload) {
  std::string out("RSDIGEST\5\0\0\0\0\0\0\0", 16);
  for (int i = 0; i < 64; i += 8)
    out.push_back(static_cast<char>(payload.size() >> i));
  const std::size_t header = out.size();
  out.resize(header + ZSTD_compressBound(payload.size()));
  out.resize(
      header +
      ZSTD_compress(out.data() + header, out.size() - header, payload.data(), payload.size(), 1));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  analyze::tally::Digest as_it_is, one;
  (void)analyze::tally::decode(bytes, "fuzz", as_it_is);
  // A corpus file is a whole digest: its payload, changed or not, is what matters.
  std::string payload(bytes);
  if (bytes.starts_with("RSDIGEST") && size > 24) {
    payload.resize(1 << 20);
    const std::size_t got =
        ZSTD_decompress(payload.data(), payload.size(), bytes.data() + 24, size - 24);
    payload = ZSTD_isError(got) != 0 ? std::string(bytes.substr(24)) : payload.substr(0, got);
  }
  bool any = false;
  for (std::size_t turn = 0; turn < 8; ++turn) {
    if (turn > 0 && !payload.empty())
      payload[(turn * 2654435761u + size) % payload.size()] ^= static_cast<char>(1u << (turn % 8));
    const std::string file = packed(payload);
    const auto read = analyze::tally::decode(file, "fuzz", one);
    std::array<analyze::tally::Reading, 2> pair;
    analyze::tally::Merger merger;
    const bool side_by_side =
        pair[0].open(file, "one") && pair[1].open(file, "two") && merger.add(pair);
    if (side_by_side != read.has_value())
      __builtin_trap();
    if (!read) {
      if (read.error().what.empty())
        __builtin_trap();
      continue;
    }
    any = true;
    const auto written = analyze::tally::encode(one);
    analyze::tally::Digest again;
    if (!written || !analyze::tally::decode(*written, "again", again) ||
        *analyze::tally::encode(again) != *written)
      __builtin_trap();
    analyze::tally::Digest both = analyze::tally::merge(one, again);
    if (*analyze::tally::encode(both) != *analyze::tally::encode(merger.take()))
      __builtin_trap();
    if (both.regions.size() > one.regions.size() ||
        both.processes.size() != 2 * one.processes.size())
      __builtin_trap();
    const auto reported = analyze::tally::report_of(std::move(both), {}, {});
    if (reported.report.regions.size() > one.regions.size())
      __builtin_trap();
  }
  return ::fuzz::count(any);
}
