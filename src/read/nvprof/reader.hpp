// Databases of nvprof (`nvprof -o FILE`, .nvprof, .nvvp), CUDA 7 to 12: SQLite with CUPTI's activity records as they
// are.
//
// All tables exist, most are empty. Names are rows of StringTable (`_id_`, `value`; row 0 stands for none), those of
// kernels are mangled. RUNTIME and DRIVER hold the calls, told by CUPTI's number (`cbid`); KERNEL, CONCURRENT_KERNEL,
// MEMCPY, MEMCPY2 and MEMSET what ran, with the correlation id of its call. NVTX is in MARKER: a row for each begin
// (flag 2), end (4) and mark (1) with the id of its pair and, as `objectId`, 12 bytes of which the first four are the
// process and the next four the thread (pthread_self's lower half, as in RUNTIME). Whether a pair was pushed or
// started is not recorded: it counts as pushed where both ends are of one thread and it crosses no other pair there.
// Counters, samples and OpenACC are not read, which a loss says. Version 8 has no domains.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::nvprof {

class NvprofReader : public Reader {
 public:
  [[nodiscard]] std::string_view name() const override { return "nvprof"; }
  [[nodiscard]] bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) const override;
  [[nodiscard]] base::Result<model::Session> read(const std::filesystem::path& path,
                                                  const Options& options) const override;
};

}  // namespace rangescope::read::nvprof
