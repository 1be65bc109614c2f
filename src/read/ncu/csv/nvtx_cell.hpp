// The NVTX cells of ncu's CSV: which ranges were open.
//
//   push/pop    4711  "domain:name:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"  "..." 4712  "..."
//   bottom to top start/end    "id:domain:name:PL_Type:..."  "..." 2020        the same, ending
//   after PL_Value
//
// Domain, name and message are the program's text and may hold colons, quotes and blanks. The six
// fields of types and values have known words, so an entry is split from behind; the message, where
// there is one, usually is the name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rangescope::read::ncu_csv {

struct CellRange {
  std::uint64_t thread = 0;  ///< push/pop: who pushed it
  std::uint64_t id = 0;      ///< start/end
  std::string_view domain;   ///< "" is the default domain
  std::string_view name;
};

/// The last is of per-NVTX summaries: names without domain ("name:PL_Type:..."), which a column of
/// its own holds.
enum class Cell : std::uint8_t { kPushPop, kStartEnd, kSummary };

/// Entries of a cell; `left_over` counts entries that could not be split. `domain`: of a summary.
[[nodiscard]] std::vector<CellRange> parse_cell(std::string_view cell,
                                                Cell kind,
                                                std::string_view domain,
                                                std::uint64_t& left_over);

}  // namespace rangescope::read::ncu_csv
