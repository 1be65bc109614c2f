// The comparison for a terminal: what differs around the runs first, then what changed, most first.
#include <algorithm>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "report/compare/formats.hpp"
#include "report/compare/view.hpp"

namespace rangescope::report {
namespace {

using base::Tone;
using model::ComparedValue;
using model::Comparison;

constexpr std::size_t kMostMissing = 12;

Tone tone_of(const std::string& standing) {
  if (standing == "slower" || standing == "more") return Tone::kBad;
  if (standing == "faster" || standing == "less") return Tone::kGood;
  return standing == "noise" || standing == "same" || standing == "untested" ? Tone::kDim : Tone::kPlain;
}

std::vector<base::Table::Column> headings(const Comparison& comparison, const char* first,
                                          const char* second = "count") {
  std::vector<base::Table::Column> list = {{first, false, true, 0}, {second, true, false, 2}};
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    list.push_back({side_letter(side), true, false, side == 0 ? 4 : 5});
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    const std::string letter = comparison.sides.size() > 2 ? " " + side_letter(side) : "";
    list.push_back({"change" + letter, true, false, 0});
    list.push_back({"between" + letter, true, false, 3});
    list.push_back({"p" + letter, true, false, 1});
    list.push_back({"" + letter, false, false, 0});
  }
  return list;
}

void add_row(base::Table& table, std::string label, std::string counts, const ComparedValue& value) {
  std::vector<base::Table::Cell> cells = {{std::move(label)}, {std::move(counts)}};
  for (std::size_t side = 0; side < value.values.size(); ++side) cells.push_back({side_value(value, side)});
  for (std::size_t side = 1; side < value.values.size(); ++side) {
    const std::string standing = standing_text(value, side);
    const Tone tone = tone_of(standing);
    cells.push_back({change_text(value, side), tone});
    cells.push_back({between_text(value.changes[side - 1]), Tone::kDim});
    cells.push_back({p_text(value.changes[side - 1]), Tone::kDim});
    cells.push_back({standing, tone});
  }
  table.add(std::move(cells));
}

}  // namespace

void write_comparison_table(const Comparison& comparison, const Style& style, Sink& sink) {
  const auto aside = [&](const std::string& text, Tone tone = Tone::kDim) {
    sink.write(base::toned(text, tone, style.color) + "\n");
  };
  aside(comparison_sentence(comparison), Tone::kBold);
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    aside(side_sentence(comparison, side), Tone::kPlain);
  for (const model::EnvironmentDifference& difference : comparison.environment)
    aside("different " + difference_sentence(difference), difference.heavy ? Tone::kWarn : Tone::kPlain);
  for (const std::string& note : comparison.notes) aside("note: " + base::printable(note), Tone::kWarn);

  const std::size_t most = style.top == 0 ? comparison.regions.size() : style.top;
  const std::size_t values = comparison.regions.empty() ? 0 : comparison.regions.front().values.size();
  for (std::size_t v = 0; v < values; ++v) {
    sink.write("\n" + base::toned(value_heading(comparison.regions.front().values[v]), Tone::kBold, style.color) +
               "\n");
    base::Table table(headings(comparison, "range"));
    for (std::size_t i = 0; i < std::min(most, comparison.regions.size()); ++i) {
      const model::ComparedRegion& region = comparison.regions[i];
      add_row(table, region_label(region), counts_text(region.occurrences), region.values[v]);
    }
    std::vector<std::string> dropped;
    sink.write(table.render(style.width, style.color, &dropped));
    if (comparison.regions.size() > most)
      aside("(" + base::counted(comparison.regions.size() - most, "more region") + " that changed less: --top)");
    if (!dropped.empty()) aside("(no room for: " + base::join(dropped, ", ") + ")");
  }
  for (const std::string& text : untested_sentences(comparison)) aside(text);
  for (std::size_t i = 0; i < std::min(kMostMissing, comparison.missing.size()); ++i)
    sink.write(missing_sentence(comparison.missing[i]) + "\n");
  if (comparison.missing.size() > kMostMissing)
    aside("(" + base::counted(comparison.missing.size() - kMostMissing, "more region") + " not on all sides)");
  for (const model::RenameOffer& offer : comparison.renames) aside(rename_sentence(offer), Tone::kWarn);

  if (const model::ComparedRegion* region = functions_shown(comparison, style.cpu)) {
    sink.write("\n" + base::toned(functions_heading(*region), Tone::kBold, style.color) + "\n");
    base::Table table(headings(comparison, "function", "of wall time"));
    for (const model::ComparedFunction& function : functions_of(*region, style.cpu))
      add_row(table, base::printable(function.name), shares_text(function.share), function.self);
    sink.write(table.render(style.width, style.color, nullptr, 40));
  }

  if (!comparison.kernels.empty() && style.top_kernels > 0) {
    sink.write("\n" + base::toned("kernels, time a call", Tone::kBold, style.color) + "\n");
    base::Table table(headings(comparison, "kernel"));
    for (std::size_t i = 0; i < std::min(style.top_kernels, comparison.kernels.size()); ++i) {
      const model::ComparedKernel& kernel = comparison.kernels[i];
      add_row(table, base::printable(kernel.name) + (kernel.folded ? " (folded)" : ""), counts_text(kernel.calls),
              kernel.per_call);
    }
    sink.write(table.render(style.width, style.color));
    if (comparison.kernels.size() > style.top_kernels)
      aside("(" + base::counted(comparison.kernels.size() - style.top_kernels, "more kernel") + ": --top-kernels)");
  }
  if (comparison.tests > 0) sink.write("\n");
  if (comparison.tests > 0) aside(base::counted(comparison.tests, "value") + " tested: " + comparison.method);
}

}  // namespace rangescope::report
