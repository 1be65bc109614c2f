// One zstd frame with a checksum, streamed into a file that is being replaced.
#pragma once

#include <zstd.h>

#include <memory>
#include <vector>

#include "base/fs.hpp"
#include "base/owned.hpp"

namespace rangescope::runs {

class ZstdWriter {
 public:
  explicit ZstdWriter(base::Replacement& file)
      : file_(file), context_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  [[nodiscard]] base::Result<void> write(const char* data, std::size_t size, bool end = false) {
    ZSTD_inBuffer in{data, size, 0};
    while (true) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left)) return base::fail(base::Code::kInternal, ZSTD_getErrorName(left), file_.temporary());
      if (auto written = file_.write({buffer_.data(), out.pos}); !written) return written;
      if (end ? left == 0 : in.pos == in.size) break;
    }
    return {};
  }

 private:
  static constexpr int kLevel = 6;

  base::Replacement& file_;
  base::Owned<ZSTD_CCtx, &ZSTD_freeCCtx> context_;
  std::vector<char> buffer_;
};

}  // namespace rangescope::runs
