// The NVTX cells of ncu's CSV: which ranges were open.
//
//   push/pop    4711  "domain:name:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"  "..." 4712  "..."     bottom to top
//   start/end    "id:domain:name:PL_Type:..."  "..."
//   2020        the same, ending after PL_Value
//
// Domain, name and message are the program's text and may hold colons, quotes and blanks. The six fields of types and
// values have known words, so an entry is split from behind; the message, where there is one, usually is the name.
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

/// Entries of a cell; `left_over` counts entries that could not be split.
[[nodiscard]] std::vector<CellRange> parse_push_pop(std::string_view cell, std::uint64_t& left_over);
[[nodiscard]] std::vector<CellRange> parse_start_end(std::string_view cell, std::uint64_t& left_over);
/// Of per-NVTX summaries: names without domain ("name:PL_Type:...").
[[nodiscard]] std::vector<CellRange> parse_summary(std::string_view cell, std::string_view domain,
                                                   std::uint64_t& left_over);

}  // namespace rangescope::read::ncu_csv
