// One result of a report, decoded: a kernel, a range, a command list or a graph, with metrics and
// NVTX state.
//
// Everything is views into the file. Sections, rules and the instances of metrics stay there: ncu
// itself prints them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "read/ncu/report/file.hpp"
#include "read/ncu/report/nvtx_state.hpp"

namespace rangescope::read::ncu_report {

struct MetricEntry {
  std::uint32_t name = 0;  ///< File::string
  Value value;
};

struct Result {
  ResultKind kind = ResultKind::kKernel;
  std::uint32_t process = 0;
  std::uint64_t thread = 0;
  std::string_view mangled, function,
      demangled;  ///< "" for ranges and graphs; the display name for command lists
  std::optional<std::array<std::uint32_t, 3>> grid, block;
  std::optional<std::uint64_t> context, stream;
  std::vector<MetricEntry> metrics;
  std::optional<NvtxState> nvtx;
};

/// Decodes one entry. Unknown fields are counted in `unknown`; damage is kBadData with the entry's
/// offset.
[[nodiscard]] base::Result<Result> decode(const File& file,
                                          const Entry& entry,
                                          std::uint64_t& unknown);

}  // namespace rangescope::read::ncu_report
