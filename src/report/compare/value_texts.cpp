#include "report/compare/value_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "model/range_expression.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;
using model::Standing;

std::string percent_change(double ratio) {
  const double change = (ratio - 1) * 100;
  if (std::abs(change) < 0.05)
    return "0.0";
  const int digits = std::abs(change) < 100 ? 1 : 0;
  return fmt::format("{:+.{}f}", change, digits);
}

}  // namespace

std::string side_letter(std::size_t side) {
  std::string text(1, static_cast<char>('A' + side % 26));
  if (side >= 26)
    text += std::to_string(side / 26);
  return text;
}

std::string region_label(const model::ComparedRegion& region) {
  std::string text = base::printable(model::path_text(region.domain, region.path));
  if (region.kind == model::RangeKind::kStartEnd)
    text += model::kStartEndMark;
  if (!region.renamed_from.empty())
    text += " (was " + base::printable(region.renamed_from) + ")";
  return text;
}

std::string compared_number(double value, const std::string& unit) {
  if (unit == "count" && value != std::floor(value))
    return fmt::format("{:.4g}", value);
  return format_value(value, unit);
}

std::string side_value(const ComparedValue& value, std::size_t side) {
  return or_dash(value.values[side],
                 [&](double number) { return compared_number(number, value.unit); });
}

std::string compared_function_text(const model::ComparedFunction& function) {
  if (!function.place.known())
    return base::printable(function.name);
  return base::printable(model::place_text(function.place));
}

std::string own_function_change(const model::ComparedFunction& function,
                                const model::ComparedRegion& region,
                                std::size_t side) {
  const ComparedValue& cpu = function.self;
  std::string text = compared_function_text(function) + " takes ";
  if (cpu.values[side] == 0)
    text += "no CPU time";
  else
    text += side_value(cpu, side) + " of CPU time";
  const bool is_one_instance =
      std::ranges::count(region.occurrences, 1.0) == std::ssize(region.occurrences);
  if (!is_one_instance)
    text += " per instance";
  text += " instead of ";
  if (cpu.values[0] == 0)
    return text + "none";
  return text + side_value(cpu, 0) + " (" + change_text(cpu, side) + ")";
}

std::string counts_text(const std::vector<std::optional<double>>& counts) {
  const auto text_of_count = [](const std::optional<double>& count) {
    return or_dash(count, [](double number) { return compared_number(number, "count"); });
  };
  const bool are_equal = std::ranges::count(counts, counts.front()) == std::ssize(counts);
  if (are_equal)
    return text_of_count(counts.front());
  std::vector<std::string> texts;
  for (const auto& count : counts)
    texts.push_back(text_of_count(count));
  return base::join(texts, ", ");
}

std::string change_text(const ComparedValue& value, std::size_t side) {
  const Change& change = value.changes[side - 1];
  if (!value.values[0] || !value.values[side])
    return "-";
  if (change.difference == 0)
    return "0.0 %";
  if (!change.ratio) {
    const std::string sign = change.difference >= 0 ? "+" : "-";
    return sign + compared_number(std::abs(change.difference), value.unit);
  }
  if (*change.ratio >= 10)
    return fmt::format("x {:.3g}", *change.ratio);
  return percent_change(*change.ratio) + " %";
}

std::string interval_text(const Change& change) {
  if (!change.low || !change.high)
    return "";
  std::string text = percent_change(*change.low) + " ... " + percent_change(*change.high) + " %";
  if (change.confidence < 0.949)
    text += fmt::format(" ({:.0f} %)", change.confidence * 100);
  return text;
}

std::string standing_text(const ComparedValue& value, std::size_t side) {
  const Change& change = value.changes[side - 1];
  const bool is_before = value.values[0].has_value();
  const bool is_after = value.values[side].has_value();
  if (!is_before && !is_after)
    return "untested";
  if (!is_before)
    return "new";
  if (!is_after)
    return "gone";
  const bool is_duration = value.unit == "ns";
  switch (change.standing) {
    case Standing::kUntested: return "untested";
    case Standing::kNoise: return change.difference == 0 ? "same" : "noise";
    case Standing::kMore: return is_duration ? "slower" : "more";
    case Standing::kLess: return is_duration ? "faster" : "less";
  }
  return "";
}

std::string p_text(const Change& change) {
  if (!change.p)
    return "";
  if (*change.p < 0.001)
    return "< 0.001";
  return fmt::format("{:.3f}", *change.p);
}

}  // namespace rangescope::report
