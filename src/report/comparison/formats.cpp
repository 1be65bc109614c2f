#include "report/comparison/formats.hpp"

#include <array>

#include "base/text.hpp"

namespace rangescope::report {

std::span<const ComparisonFormat> comparison_formats() {
  static constexpr std::array kFormats = {
      ComparisonFormat{"table", write_comparison_table}, ComparisonFormat{"json", write_comparison_json},
      ComparisonFormat{"csv", write_comparison_csv},     ComparisonFormat{"md", write_comparison_markdown},
      ComparisonFormat{"html", write_comparison_html},   ComparisonFormat{"collapsed", write_comparison_collapsed},
  };
  return kFormats;
}

base::Result<const ComparisonFormat*> find_comparison_format(std::string_view name) {
  std::vector<std::string> known;
  for (const ComparisonFormat& format : comparison_formats()) {
    if (format.name == name) return &format;
    known.emplace_back(format.name);
  }
  std::string hint = base::did_you_mean(name, known);
  if (hint.empty()) hint = "Write one of " + base::join(known, ", ");
  return base::fail(base::Code::kUsage, "there is no comparison format '" + base::printable(name) + "'", "--format",
                    std::move(hint));
}

}  // namespace rangescope::report
