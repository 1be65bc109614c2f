// Texts of a comparison that its document, its headline and the gate's document share: names of
// sides and regions, values, changes and how significant they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/comparison.hpp"

namespace rangescope::report {

/// "A", "B", ... of a side.
[[nodiscard]] std::string side_letter(std::size_t side);
/// Path of the region, printable; with its former name if --rename joined two.
[[nodiscard]] std::string region_label(const model::ComparedRegion& region);

/// "12.3 ms"; a count that is not an integer (a median of runs) keeps its fraction.
[[nodiscard]] std::string compared_number(double value, const std::string& unit);
/// The value of a side: "1.23 ms", "-" if absent.
[[nodiscard]] std::string side_value(const model::ComparedValue& value, std::size_t side);
/// "252", or "252, 126" if the sides differ; "-" for a side without the region.
[[nodiscard]] std::string counts_text(const std::vector<std::optional<double>>& counts);
/// "+8.3 %", "x 12.5" for a factor of ten or more, the difference if there is no ratio.
[[nodiscard]] std::string change_text(const model::ComparedValue& value, std::size_t side);
/// "+5.1 ... +11.2 %", with "(90 %)" if there are too few runs for 95 %; "" without an interval.
[[nodiscard]] std::string interval_text(const model::Change& change);
/// "slower", "faster" for times, else "more", "less"; "noise", "same"; "new", "gone"; "untested".
[[nodiscard]] std::string standing_text(const model::ComparedValue& value, std::size_t side);
/// "dedup (quad.py:2)", "memcpy [libc.so.6]"
[[nodiscard]] std::string compared_function_text(const model::ComparedFunction& function);
/// "dedup (quad.py:2) takes 412.7 ms of CPU time instead of 10.19 ms (+3950 %)", of one of the
/// program's own functions; "per instance" where the region has several.
[[nodiscard]] std::string own_function_change(const model::ComparedFunction& function,
                                              const model::ComparedRegion& region,
                                              std::size_t side);
/// "0.004", "< 0.001"
[[nodiscard]] std::string p_text(const model::Change& change);

}  // namespace rangescope::report
