#include "read/ncu/report/unpack.hpp"

#include <zstd.h>

#include <memory>

#include "base/owned.hpp"
#include "base/unpacked.hpp"

namespace rangescope::read::ncu_report {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 20;

struct Stream {
  base::Owned<ZSTD_DStream, &ZSTD_freeDStream> state{ZSTD_createDStream()};
  ZSTD_inBuffer in{};
  explicit Stream(std::string_view bytes) : in{bytes.data(), bytes.size(), 0} {
    ZSTD_initDStream(state.get());
  }
};

}  // namespace

bool is_zstd(std::string_view head) {
  return head.starts_with("\x28\xb5\x2f\xfd");
}

std::string unpack_head(std::string_view bytes, std::size_t limit) {
  Stream stream(bytes);
  std::string out(limit, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  while (to.pos < to.size && stream.in.pos < stream.in.size) {
    const std::size_t before = to.pos + stream.in.pos;
    if (ZSTD_isError(ZSTD_decompressStream(stream.state.get(), &to, &stream.in)) ||
        to.pos + stream.in.pos == before)
      break;
  }
  out.resize(to.pos);
  return out;
}

base::Result<Unpacked> unpack(std::string_view bytes, const std::string& path, std::size_t limit) {
  if (limit == 0)
    limit = base::most_unpacked(bytes.size());
  Stream stream(bytes);
  Unpacked out;
  std::string piece(kStep, '\0');
  std::size_t left = 0;  // what the decoder still expects of the current frame
  const auto offset_text = [&] {
    return path + ": compressed offset " + std::to_string(stream.in.pos);
  };
  for (;;) {
    ZSTD_outBuffer to{piece.data(), piece.size(), 0};
    const std::size_t before = stream.in.pos;
    const std::size_t rc = ZSTD_decompressStream(stream.state.get(), &to, &stream.in);
    if (ZSTD_isError(rc)) {
      return base::fail(
          base::Code::kBadData,
          std::string("damaged zstd stream: ") + ZSTD_getErrorName(rc),
          offset_text(),
          "Check that the file was copied whole, or unpack it with `zstd -d` to see what is left.");
    }
    if (to.pos > limit - out.bytes.size()) {
      return base::fail(base::Code::kBadData,
                        "unpacks to more than " + std::to_string(limit) + " bytes",
                        offset_text(),
                        "Unpack it with `zstd -d` and give the unpacked report.");
    }
    out.bytes.append(piece, 0, to.pos);
    left = rc;
    const bool stuck = to.pos == 0 && stream.in.pos == before;
    if (stream.in.pos == stream.in.size && (to.pos < to.size || rc == 0))
      break;
    if (stuck)
      break;
  }
  out.torn = left != 0;
  return out;
}

}  // namespace rangescope::read::ncu_report
