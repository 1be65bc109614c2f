// The sections of a result as the details page and the summaries show them: metrics chosen, labelled, in order; rules.
#pragma once

#include <string>
#include <vector>

#include "ncu_pages/pages.hpp"

namespace rangescope::ncu_pages {

struct SectionRow {
  std::string_view name;      ///< of the metric
  std::string label;          ///< as --print-metric-name asks
  const MetricEntry* metric;  ///< null when the report does not hold it: "(!) n/a"
};

struct ShownSection {
  const Section* section = nullptr;
  std::vector<SectionRow> rows;
  std::vector<const Rule*> rules;
};

/// Filters of --section and --metrics over the sections of a result, by their order.
class SectionView {
 public:
  [[nodiscard]] static base::Result<SectionView> make(const Selection& selection, const PageOptions& options);
  [[nodiscard]] std::vector<ShownSection> of(const Result& result, const DeviceLabel& device) const;

 private:
  explicit SectionView(const File& file, const PageOptions& options) : file_(&file), options_(&options) {}
  const File* file_;
  const PageOptions* options_;
  NameFilter sections_, metrics_;
};

}  // namespace rangescope::ncu_pages
