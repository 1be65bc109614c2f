#include "report/compare/formats.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/compare/document.hpp"

namespace rangescope::report {
namespace {

void write_table(const model::Comparison& comparison, const Style& style, Sink& sink) {
  render_terminal(comparison_document(comparison, style), style, sink);
}

void write_markdown(const model::Comparison& comparison, const Style& style, Sink& sink) {
  render_markdown(comparison_document(comparison, style), sink);
}

}  // namespace

std::span<const ComparisonFormat> comparison_formats() {
  static constexpr ComparisonFormat kFormats[] = {
      {"table", "txt", write_table},
      {"json", "json", write_comparison_json},
      {"csv", "csv", write_comparison_csv},
      {"md", "md", write_markdown},
      {"html", "html", write_comparison_html},
      {"collapsed", "collapsed", write_comparison_collapsed}};
  return kFormats;
}

base::Result<const ComparisonFormat*> find_comparison_format(std::string_view name) {
  std::vector<std::string> names;
  for (const ComparisonFormat& format : comparison_formats()) {
    if (format.name == name)
      return &format;
    names.emplace_back(format.name);
  }
  std::string hint = base::did_you_mean(name, names);
  if (hint.empty())
    hint = "Write one of " + base::join(names, ", ");
  return base::fail(base::Code::kUsage,
                    "there is no comparison format '" + base::printable(name) + "'",
                    "--format",
                    std::move(hint));
}

base::Result<void> check_sampled(const model::Comparison& comparison,
                                 std::string_view format,
                                 const Style& style) {
  if (!style.cpu.empty() && functions_shown(comparison, style.cpu) == nullptr) {
    std::vector<std::string> names;
    for (const model::ComparedRegion& region : comparison.regions)
      if (!region.functions.empty())
        names.push_back(model::path_text("", region.path));
    std::string hint = "Record all sides with rangescope profile --cpu";
    if (!names.empty())
      hint = base::did_you_mean(style.cpu, names);
    return base::fail(base::Code::kNothingCaptured,
                      "no range '" + base::printable(style.cpu) + "' was sampled on every side",
                      "--cpu",
                      hint);
  }
  const bool has_chains = std::ranges::any_of(
      comparison.regions, [](const auto& region) { return !region.chains.empty(); });
  if (format == "collapsed" && !has_chains)
    return base::fail(base::Code::kNothingCaptured,
                      "no range has CPU call chains on all sides",
                      "--format",
                      "Record with rangescope profile --cpu, and name runs: reports and baselines "
                      "have no call chains");
  return {};
}

}  // namespace rangescope::report
