// One row a region, value and side: RFC 4180, base units, empty where absent.

#include "model/measure.hpp"
#include "report/compare/formats.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

void rows(const std::string& kind, const std::string& path, const std::string& domain,
          const std::vector<std::optional<double>>& counts, const model::ComparedValue& value,
          const model::Comparison& comparison, Sink& sink) {
  for (std::size_t side = 1; side < value.values.size(); ++side) {
    const model::Change& change = value.changes[side - 1];
    const bool both = value.values[0] && value.values[side];
    csv_row(sink, {kind, csv_field(domain), csv_field(path), csv_field(value.tag), value.unit,
                   value.per_occurrence ? "true" : "false", csv_field(comparison.sides[side].label),
                   csv_number(counts[0]), csv_number(counts[side]), csv_number(value.values[0]),
                   csv_number(value.values[side]), both ? csv_number(change.difference) : "", csv_number(change.ratio),
                   csv_number(change.low), csv_number(change.high), csv_number(change.p),
                   std::string(model::standing_name(change.standing)), csv_field(change.why)});
  }
}

}  // namespace

void write_comparison_csv(const model::Comparison& comparison, const Style&, Sink& sink) {
  csv_row(sink, {"what", "domain", "path", "value", "unit", "per_occurrence", "side", "count_a", "count", "value_a",
                 "value_side", "difference", "ratio", "low", "high", "p", "standing", "why"});
  for (const auto* list : {&comparison.regions, &comparison.missing}) {
    for (const model::ComparedRegion& region : *list) {
      for (const model::ComparedValue& value : region.values)
        rows(std::string(kind_name(region.kind)), model::path_text("", region.path), region.domain, region.occurrences,
             value, comparison, sink);
      for (const model::ComparedFunction& function : region.functions)
        rows("function", model::path_text("", region.path) + " > " + function.name, region.domain, region.occurrences,
             function.self, comparison, sink);
    }
  }
  for (const model::ComparedKernel& kernel : comparison.kernels) {
    rows("kernel", kernel.name, "", kernel.calls, kernel.total, comparison, sink);
    rows("kernel", kernel.name, "", kernel.calls, kernel.per_call, comparison, sink);
  }
}

}  // namespace rangescope::report
