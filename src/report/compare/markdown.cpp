// The comparison as Markdown, for issues and notes.
#include <algorithm>

#include "base/units.hpp"
#include "report/compare/formats.hpp"
#include "report/compare/view.hpp"
#include "report/document/markdown_text.hpp"

namespace rangescope::report {
namespace {

std::vector<std::string> titles(const model::Comparison& comparison, const char* first, const char* second = "count") {
  std::vector<std::string> list = {first, second};
  for (std::size_t side = 0; side < comparison.sides.size(); ++side) list.push_back(side_letter(side));
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    const std::string letter = comparison.sides.size() > 2 ? " " + side_letter(side) : "";
    for (const char* title : {"change", "between", "p", "verdict"}) list.push_back(title + letter);
  }
  return list;
}

std::vector<std::string> cells(std::string label, const std::string& counts, const model::ComparedValue& value) {
  std::vector<std::string> list = {std::move(label), md_escaped(counts)};
  for (std::size_t side = 0; side < value.values.size(); ++side) list.push_back(md_escaped(side_value(value, side)));
  for (std::size_t side = 1; side < value.values.size(); ++side) {
    const std::string standing = standing_text(value, side);
    const bool out = standing != "noise" && standing != "same" && standing != "untested";
    for (const std::string& text :
         {change_text(value, side), between_text(value.changes[side - 1]), p_text(value.changes[side - 1])})
      list.push_back(md_escaped(text));
    list.push_back(out ? "**" + standing + "**" : standing);
  }
  return list;
}

}  // namespace

void write_comparison_markdown(const model::Comparison& comparison, const Style& style, Sink& sink) {
  sink.write("# Comparison\n\n" + md_escaped(comparison_sentence(comparison)) + "\n\n");
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    sink.write("- " + md_escaped(side_sentence(comparison, side)) + "\n");
  for (const model::EnvironmentDifference& difference : comparison.environment)
    sink.write(std::string("- ") + (difference.heavy ? "**different** " : "different ") +
               md_escaped(difference_sentence(difference)) + "\n");
  for (const std::string& note : comparison.notes) sink.write("- note: " + md_escaped(note) + "\n");
  const std::size_t most = style.top == 0 ? comparison.regions.size() : style.top;
  const std::size_t values = comparison.regions.empty() ? 0 : comparison.regions.front().values.size();
  for (std::size_t v = 0; v < values; ++v) {
    sink.write("\n## " + md_escaped(value_heading(comparison.regions.front().values[v])) + "\n\n");
    const auto head = titles(comparison, "range");
    md_row(sink, head);
    md_rule(sink, head.size() - 1);
    for (std::size_t i = 0; i < std::min(most, comparison.regions.size()); ++i) {
      const model::ComparedRegion& region = comparison.regions[i];
      md_row(sink, cells(md_escaped(region_label(region)), counts_text(region.occurrences), region.values[v]));
    }
    if (comparison.regions.size() > most)
      sink.write("\n" + base::counted(comparison.regions.size() - most, "more region") + " changed less.\n");
  }
  if (!comparison.missing.empty() || !comparison.renames.empty()) sink.write("\n## Not on all sides\n\n");
  for (const model::ComparedRegion& region : comparison.missing)
    sink.write("- " + md_escaped(missing_sentence(region)) + "\n");
  for (const model::RenameOffer& offer : comparison.renames)
    sink.write("- " + md_escaped(rename_sentence(offer)) + "\n");
  if (const model::ComparedRegion* region = functions_shown(comparison, style.cpu)) {
    sink.write("\n## " + md_escaped(functions_heading(*region)) + "\n\n");
    const auto head = titles(comparison, "function", "of wall time");
    md_row(sink, head);
    md_rule(sink, head.size() - 1);
    for (const model::ComparedFunction& function : functions_of(*region, style.cpu))
      md_row(sink, cells(md_escaped(function.name), shares_text(function.share), function.self));
  }
  if (!comparison.kernels.empty() && style.top_kernels > 0) {
    sink.write("\n## Kernels, time a call\n\n");
    const auto head = titles(comparison, "kernel");
    md_row(sink, head);
    md_rule(sink, head.size() - 1);
    for (std::size_t i = 0; i < std::min(style.top_kernels, comparison.kernels.size()); ++i) {
      const model::ComparedKernel& kernel = comparison.kernels[i];
      md_row(sink, cells(md_escaped(kernel.name) + (kernel.folded ? " (folded)" : ""), counts_text(kernel.calls),
                         kernel.per_call));
    }
  }
  sink.write("\n");
  for (const std::string& text : untested_sentences(comparison)) sink.write("- " + md_escaped(text) + "\n");
  if (comparison.tests > 0)
    sink.write("- " + base::counted(comparison.tests, "value") + " tested: " + md_escaped(comparison.method) + "\n");
}

}  // namespace rangescope::report
